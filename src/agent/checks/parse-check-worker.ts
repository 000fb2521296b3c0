// The thread of a parse check: parses the files of its task, validates each with the schema, and posts its progress and one
// verdict. The caller limits its memory and time. It has no state, so it may end at any point.
import { readFileSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { writVersion } from '../../core/version.js';
import { ownThreadId } from '../../platform/process/thread-time.js';
import { type DocumentProblem, formatOf, readPolicyDocument } from './document-rules.js';
import { compilePolicySchema, type PolicySchema } from './schema-rules.js';

export interface ParseTask {
  /** Version of the program that started the thread. */
  readonly version: string;
  readonly treePath: string;
  /** Paths inside the tree. */
  readonly files: readonly string[];
  /** A mistake in a schema of the bundle refuses the bundle; one in a schema of the host gives no verdict. */
  readonly schema?: { readonly path: string; readonly name: string; readonly from: 'bundle' | 'host' };
  readonly maxProblems: number;
}

/** The file that the thread begins with, which is the cause if the thread ends. */
export interface ParseProgress {
  readonly kind: 'reading';
  readonly path: string;
  readonly from: 'bundle' | 'host';
  /** Thread id of the kernel. */
  readonly threadId?: number | undefined;
}

export type ParseAnswer =
  /** One line for each mistake, with file, line and column; at most maxProblems. */
  | { readonly kind: 'judged'; readonly problems: readonly string[] }
  /** The program that started the thread has another version than this file. */
  | { readonly kind: 'replaced' }
  /** A file needs more stack than the thread has. */
  | { readonly kind: 'overflowed' }
  /** No verdict on the files: the host's own schema cannot be used. */
  | { readonly kind: 'unusable'; readonly reason: string };

parentPort?.postMessage(runTask(workerData as ParseTask));

function report(path: string, from: ParseProgress['from']): void {
  parentPort?.postMessage({ kind: 'reading', path, from, threadId: ownThreadId() } satisfies ParseProgress);
}

function runTask(task: ParseTask): ParseAnswer {
  if (task.version !== writVersion) return { kind: 'replaced' };
  try {
    return judgeAll(task);
  } catch (error) {
    // V8 has no error code for it. The stack has the same size on every host, so the verdict does not depend on the host.
    if (error instanceof RangeError && error.message === 'Maximum call stack size exceeded')
      return { kind: 'overflowed' };
    throw error;
  }
}

function judgeAll(task: ParseTask): ParseAnswer {
  if (task.schema !== undefined) report(task.schema.name, task.schema.from);
  const schema = task.schema === undefined ? undefined : loadSchema(task.schema.path);
  if (schema?.kind === 'unusable') {
    const text = `the schema ${task.schema?.name ?? ''} cannot be used: ${schema.reason}`;
    return task.schema?.from === 'bundle'
      ? { kind: 'judged', problems: [text] }
      : { kind: 'unusable', reason: text };
  }
  const problems: string[] = [];
  for (const file of task.files) {
    const remaining = task.maxProblems - problems.length;
    if (remaining <= 0) break;
    report(file, 'bundle');
    problems.push(...judgeFile(task, file, schema).slice(0, remaining));
  }
  return { kind: 'judged', problems };
}

function loadSchema(path: string): PolicySchema {
  try {
    const document = readPolicyDocument(readFileSync(path), formatOf(path), 1);
    if (document.kind === 'data') return compileSchema(document.data);
    const [first] = document.problems;
    return { kind: 'unusable', reason: first === undefined ? 'unreadable' : formatProblem('', first) };
  } catch (error) {
    return { kind: 'unusable', reason: error instanceof Error ? error.message : String(error) };
  }
}

/** Compiles and runs the schema once, so that an endless recursion counts for the schema and not for a file. @throws RangeError */
function compileSchema(schema: unknown): PolicySchema {
  const compiled = compilePolicySchema(schema, { ipv4: isIPv4, ipv6: isIPv6 });
  if (compiled.kind === 'schema') compiled.judge(null);
  return compiled;
}

function judgeFile({ treePath, maxProblems }: ParseTask, file: string, schema?: PolicySchema): string[] {
  const document = readPolicyDocument(readFileSync(join(treePath, file)), formatOf(file), maxProblems);
  if (document.kind === 'mistakes') return document.problems.map((problem) => formatProblem(file, problem));
  if (schema?.kind !== 'schema') return [];
  const problems = schema.judge(document.data).slice(0, maxProblems);
  const places = document.locate(problems.map(({ pointer }) => pointer));
  return problems.map(({ pointer, text }, index) => {
    const { line, column } = places[index] ?? { line: 1, column: 1 };
    return formatProblem(file, { line, column, text: pointer === '' ? text : `${pointer} ${text}` });
  });
}

/** Limited to 500 characters, because names and values in it come from the bundle. */
function formatProblem(file: string, { line, column, text }: DocumentProblem): string {
  return `${file}:${line}:${column}: ${text.replaceAll('\n', ' ')}`.slice(0, 500);
}
