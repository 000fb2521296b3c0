// The built-in parse check: parses the YAML and JSON files of a bundle and validates them with a JSON Schema, in a thread with
// limits for time and memory. Starts the thread, selects the files, and decides the cause of an ended thread (ADR 0037):
// content beyond a bound of the check is refused, and a lack of resources on the host gives no verdict.

import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import picomatch from '#picomatch';
import type { ParseCheckConfig } from '../../core/config/config.js';
import type { HookVerdict } from '../../core/cycle/hook-verdict.js';
import { isMissingPart, replacedProgram } from '../../core/errors.js';
import type { Manifest, ManifestFile } from '../../core/release/manifest.js';
import { writVersion } from '../../core/version.js';
import { threadCpuMs } from '../../platform/process/thread-time.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { HookReport } from '../hooks/hook.js';
import type { ParseAnswer, ParseProgress, ParseTask } from './parse-check-worker.js';

export interface ParseCheckOptions {
  readonly config: ParseCheckConfig;
  readonly treePath: string;
  readonly manifest: Manifest;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** @returns the processor time of a thread, by its kernel id; absent: read from /proc */
  readonly cpuMs?: (threadId: number) => number | undefined;
}

/** The bound of the check that a file exceeded. */
export interface Exceeded {
  readonly bound: 'memory' | 'time' | 'stack';
  /** Path in the bundle. */
  readonly file: string;
}

/** The answer of a check. Its text has all mistakes, or the reason for no verdict; its length is limited. */
export interface CheckAnswer extends Pick<HookReport, 'verdict' | 'text' | 'hint' | 'code'> {
  readonly exceeded?: Exceeded;
  /** For a change check: the first exceeded bound. */
  readonly facts?: { readonly expected: string; readonly actual: string };
}

const maxProblems = 20;
/** Text and buffers are outside the limited heap, so a file may have only this fraction of the memory of the check. */
const memoryPerFileByte = 4;
/** A thread that got this share of its timeout as processor time was slow because of its files; with less, the host was busy. */
const ownShareOfTime = 0.75;
const inBundle = 'bundle:';

/** Never throws because of a file or a schema, and ends within the timeout of the check. */
export async function runParseCheck(options: ParseCheckOptions): Promise<CheckAnswer> {
  const { config, manifest } = options;
  const matches = picomatch([...config.files], { dot: true });
  const files = manifest.files.filter(({ path }) => matches(path));
  if (files.length === 0)
    return answer('warned', 'nothing checked', `no file matches ${config.files.join(' ')}`);
  const read = [...files, ...manifest.files.filter(({ path }) => `${inBundle}${path}` === config.schema)];
  const tooLarge = read.find(({ sizeBytes }) => sizeBytes * memoryPerFileByte > config.maxMemoryBytes);
  if (tooLarge !== undefined) return refuseExceeded({ bound: 'memory', file: tooLarge.path }, config);
  const task = createTask(options, files);
  if (task === undefined) {
    return answer('refused', 'no schema', `the schema ${config.schema ?? ''} is not in the bundle`);
  }
  return runWorker(task, options, files.length);
}

/** @returns undefined if the bundle does not have its configured schema */
function createTask(
  { config, treePath, manifest }: ParseCheckOptions,
  files: readonly ManifestFile[],
): ParseTask | undefined {
  const { schema } = config;
  const task = { version: writVersion, treePath, maxProblems, files: files.map(({ path }) => path) };
  if (schema === undefined) return task;
  if (!schema.startsWith(inBundle)) return { ...task, schema: { path: schema, name: schema, from: 'host' } };
  const inside = schema.slice(inBundle.length);
  if (!manifest.files.some(({ path }) => path === inside)) return undefined;
  // The schema file is not validated with itself.
  const others = task.files.filter((path) => path !== inside);
  return { ...task, files: others, schema: { path: join(treePath, inside), name: inside, from: 'bundle' } };
}

async function runWorker(
  task: ParseTask,
  { config, clock, signal, cpuMs = threadCpuMs }: ParseCheckOptions,
  fileCount: number,
): Promise<CheckAnswer> {
  const worker = new Worker(new URL('./parse-check-worker.js', import.meta.url), {
    workerData: task,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: Math.max(Math.ceil(config.maxMemoryBytes / 1_000_000), 8) },
  });
  let reading: ParseProgress | undefined;
  worker.on('message', (message: ParseProgress | ParseAnswer) => {
    if (message.kind === 'reading') reading = message;
  });
  const blame = (bound: Exceeded['bound']): CheckAnswer => judgeExceeded(bound, reading, config);
  const finished = new AbortController();
  using stop = joinSignals(signal, finished.signal);
  const deadline = clock.sleep(config.timeoutMs, stop.signal).then(() => {
    if (signal?.aborted) return answer('broken', 'interrupted', 'the check was interrupted');
    const usedMs = reading?.threadId === undefined ? undefined : cpuMs(reading.threadId);
    return (usedMs ?? 0) >= config.timeoutMs * ownShareOfTime ? blame('time') : tooSlow();
  });
  try {
    return await Promise.race([awaitAnswer(worker, fileCount, blame), deadline]);
  } finally {
    finished.abort();
    await worker.terminate();
  }
}

type OnExceeded = (bound: Exceeded['bound']) => CheckAnswer;

function awaitAnswer(worker: Worker, fileCount: number, blame: OnExceeded): Promise<CheckAnswer> {
  return new Promise((resolve) => {
    worker.on('message', (message: ParseProgress | ParseAnswer) => {
      if (message.kind === 'overflowed') resolve(blame('stack'));
      else if (message.kind === 'replaced') resolve(replaced());
      else if (message.kind !== 'reading') resolve(toAnswer(message, fileCount));
    });
    worker.once('error', (error: Error & { code?: string }) => {
      // V8 reports only the limit of the thread in this way. If the system has no memory, the whole process ends.
      const isOwnLimit = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      if (isOwnLimit) resolve(blame('memory'));
      else resolve(isMissingPart(error) ? replaced() : died(error.message));
    });
    worker.once('exit', () => resolve(died('it ended without a verdict')));
  });
}

function toAnswer(
  end: Extract<ParseAnswer, { kind: 'judged' | 'unusable' }>,
  fileCount: number,
): CheckAnswer {
  if (end.kind === 'unusable') return answer('broken', 'schema unusable', end.reason, schemaHint);
  if (end.problems.length > 0) return refusal(end.problems);
  return answer('ok', 'parsed', fileCount === 1 ? '1 file parses' : `${fileCount} files parse`);
}

/** A bundle file that exceeds a bound is refused, because it does so at each attempt. Before the first file there is no verdict. */
function judgeExceeded(
  bound: Exceeded['bound'],
  reading: ParseProgress | undefined,
  config: ParseCheckConfig,
): CheckAnswer {
  if (reading?.from === 'bundle') return refuseExceeded({ bound, file: reading.path }, config);
  if (reading === undefined) return died(`it ran out of ${bound} before it started`);
  const text = `the schema ${reading.path} cannot be used: it needs more ${bound} than the check allows`;
  return answer('broken', 'schema unusable', text, schemaHint);
}

const schemaHint = 'Fix the schema on this host; the release is tried again.';

const boundTexts = {
  memory: ({ maxMemoryBytes }: ParseCheckConfig) => `${maxMemoryBytes} bytes of memory (\`memory\`)`,
  time: ({ timeoutMs }: ParseCheckConfig) => `${timeoutMs} ms of processor time (\`timeout\`)`,
  stack: () => 'the stack of a thread',
} as const;

function refuseExceeded(exceeded: Exceeded, config: ParseCheckConfig): CheckAnswer {
  const { bound, file } = exceeded;
  const what = boundTexts[bound](config);
  const raiseHint =
    bound === 'stack' ? '' : `, or raise \`${bound === 'time' ? 'timeout' : 'memory'}\` of the check`;
  return {
    ...answer('refused', `too much ${bound}`, `${file}: parsing and checking it takes more than ${what}`),
    exceeded,
    hint: `Publish a smaller or simpler ${file}${raiseHint}.`,
  };
}

function tooSlow(): CheckAnswer {
  const text = 'the files could not be parsed in time: the host was too busy for this check';
  return answer('broken', 'timed out', text, 'Check what keeps the host busy; the release is tried again.');
}

function died(reason: string): CheckAnswer {
  const hint = 'Check whether the host is short of memory or threads; the release is tried again.';
  return answer('broken', 'died', reason, hint);
}

/** After an upgrade the program file of the thread is missing, or has another version. */
function replaced(): CheckAnswer {
  const { code, message, hint } = replacedProgram();
  return { ...answer('broken', 'program replaced', message, hint), code };
}

function refusal(problems: readonly string[]): CheckAnswer {
  const more = problems.length >= maxProblems ? ['there may be more'] : [];
  return answer('refused', 'mistakes', [...problems, ...more].join('\n'));
}

function answer(kind: HookVerdict['kind'], reason: string, text: string, hint?: string): CheckAnswer {
  return { verdict: { kind, reason }, text, ...(hint === undefined ? {} : { hint }) };
}
