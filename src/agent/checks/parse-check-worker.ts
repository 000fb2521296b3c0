// The thread of a parse check: reads the files it is told, parses each, holds it against the schema, and posts what it
// reads and one verdict. Its memory and time are bounded from outside; it may die at any point and nothing is lost.
import { readFileSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { writVersion } from '../../core/version.js';
import { ownThreadId } from '../../platform/process/thread-time.js';
import { type DocumentProblem, formatOf, readPolicyDocument } from './document-rules.js';
import { compilePolicySchema, type PolicySchema } from './schema-rules.js';

export interface ParseTask {
  /** Of who asks. */
  readonly version: string;
  readonly treePath: string;
  /** Paths inside the tree. */
  readonly files: readonly string[];
  /** A schema of the bundle is judged with it; one of the host is the host's own. */
  readonly schema?: { readonly path: string; readonly name: string; readonly from: 'bundle' | 'host' };
  readonly maxProblems: number;
}

/** What it begins with: should it die, that is what it died of. */
export interface ParseProgress {
  readonly kind: 'reading';
  readonly path: string;
  readonly from: 'bundle' | 'host';
  /** Of the kernel. */
  readonly threadId?: number | undefined;
}

export type ParseAnswer =
  /** One line a mistake, with file, line and column; at most maxProblems. */
  | { readonly kind: 'judged'; readonly problems: readonly string[] }
  /** Who asks is another version than this file. */
  | { readonly kind: 'replaced' }
  /** One file needs more of the stack than there is. */
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
    // V8 has no other sign of it. The stack has the same size on every host, however little memory that has.
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
    const room = task.maxProblems - problems.length;
    if (room <= 0) break;
    report(file, 'bundle');
    problems.push(...judgeFile(task, file, schema).slice(0, room));
  }
  return { kind: 'judged', problems };
}

function loadSchema(path: string): PolicySchema {
  try {
    const document = readPolicyDocument(readFileSync(path), formatOf(path), 1);
    if (document.kind === 'data') return usable(document.data);
    const [first] = document.problems;
    return { kind: 'unusable', reason: first === undefined ? 'unreadable' : lineOf('', first) };
  } catch (error) {
    return { kind: 'unusable', reason: error instanceof Error ? error.message : String(error) };
  }
}

/** A schema that refers to itself without end is no fault of the first file that meets it. @throws RangeError */
function usable(schema: unknown): PolicySchema {
  const compiled = compilePolicySchema(schema, { ipv4: isIPv4, ipv6: isIPv6 });
  if (compiled.kind === 'schema') compiled.judge(null);
  return compiled;
}

function judgeFile({ treePath, maxProblems }: ParseTask, file: string, schema?: PolicySchema): string[] {
  const document = readPolicyDocument(readFileSync(join(treePath, file)), formatOf(file), maxProblems);
  if (document.kind === 'mistakes') return document.problems.map((problem) => lineOf(file, problem));
  if (schema?.kind !== 'schema') return [];
  const problems = schema.judge(document.data).slice(0, maxProblems);
  const places = document.locate(problems.map(({ pointer }) => pointer));
  return problems.map(({ pointer, text }, index) => {
    const { line, column } = places[index] ?? { line: 1, column: 1 };
    return lineOf(file, { line, column, text: pointer === '' ? text : `${pointer} ${text}` });
  });
}

/** Bounded: names and values in it come from the bundle. */
function lineOf(file: string, { line, column, text }: DocumentProblem): string {
  return `${file}:${line}:${column}: ${text.replaceAll('\n', ' ')}`.slice(0, 500);
}
