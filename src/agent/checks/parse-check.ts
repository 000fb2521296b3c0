// The built-in check: do the YAML and JSON files of a bundle parse, and do they fit a JSON Schema? Runs in a
// thread of its own, which is ended at its deadline or when it wants too much memory. Owns the thread, the choice of files,
// and whose fault such an end is (ADR 0037): content beyond a bound of the check is refused, what the host had not to give
// is no verdict. Parsing is core's.

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
  /** Of a thread of this process, by the kernel's id; left out: as /proc says. */
  readonly cpuMs?: (threadId: number) => number | undefined;
}

/** What a file wanted more of than the check may have. */
export interface Exceeded {
  readonly bound: 'memory' | 'time' | 'stack';
  /** In the bundle. */
  readonly file: string;
}

/** Its text is every mistake, or why there is no verdict. Bounded. */
export interface CheckAnswer extends Pick<HookReport, 'verdict' | 'text' | 'hint' | 'code'> {
  readonly exceeded?: Exceeded;
  /** The bound of a check of the change that was exceeded first. */
  readonly facts?: { readonly expected: string; readonly actual: string };
}

const maxProblems = 20;
/** Text and buffers lie outside the bounded heap, so a file may only be a part of what the check may have. */
const memoryPerFileByte = 4;
/** A thread that had this much of its time for itself was slow by what it read, one that had less was kept waiting. */
const ownShareOfTime = 0.75;
const inBundle = 'bundle:';

/** Never throws for what a file or a schema holds, and never longer than the check's timeout. */
export async function runParseCheck(options: ParseCheckOptions): Promise<CheckAnswer> {
  const { config, manifest } = options;
  const matches = picomatch([...config.files], { dot: true });
  const files = manifest.files.filter(({ path }) => matches(path));
  if (files.length === 0)
    return answer('warned', 'nothing checked', `no file matches ${config.files.join(' ')}`);
  const read = [...files, ...manifest.files.filter(({ path }) => `${inBundle}${path}` === config.schema)];
  const tooLarge = read.find(({ sizeBytes }) => sizeBytes * memoryPerFileByte > config.maxMemoryBytes);
  if (tooLarge !== undefined) return beyond({ bound: 'memory', file: tooLarge.path }, config);
  const task = taskOf(options, files);
  if (task === undefined) {
    return answer('refused', 'no schema', `the schema ${config.schema ?? ''} is not in the bundle`);
  }
  return runWorker(task, options, files.length);
}

/** @returns undefined when the schema should be in the bundle and is not */
function taskOf(
  { config, treePath, manifest }: ParseCheckOptions,
  files: readonly ManifestFile[],
): ParseTask | undefined {
  const { schema } = config;
  const task = { version: writVersion, treePath, maxProblems, files: files.map(({ path }) => path) };
  if (schema === undefined) return task;
  if (!schema.startsWith(inBundle)) return { ...task, schema: { path: schema, name: schema, from: 'host' } };
  const inside = schema.slice(inBundle.length);
  if (!manifest.files.some(({ path }) => path === inside)) return undefined;
  // The schema itself need not fit the schema.
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
  const blame = (bound: Exceeded['bound']): CheckAnswer => judgeEnd(bound, reading, config);
  const finished = new AbortController();
  using stop = joinSignals(signal, finished.signal);
  const deadline = clock.sleep(config.timeoutMs, stop.signal).then(() => {
    if (signal?.aborted) return answer('broken', 'interrupted', 'the check was interrupted');
    const usedMs = reading?.threadId === undefined ? undefined : cpuMs(reading.threadId);
    return (usedMs ?? 0) >= config.timeoutMs * ownShareOfTime ? blame('time') : tooSlow();
  });
  try {
    return await Promise.race([endOf(worker, fileCount, blame), deadline]);
  } finally {
    finished.abort();
    await worker.terminate();
  }
}

type Blame = (bound: Exceeded['bound']) => CheckAnswer;

function endOf(worker: Worker, fileCount: number, blame: Blame): Promise<CheckAnswer> {
  return new Promise((resolve) => {
    worker.on('message', (message: ParseProgress | ParseAnswer) => {
      if (message.kind === 'overflowed') resolve(blame('stack'));
      else if (message.kind === 'replaced') resolve(replaced());
      else if (message.kind !== 'reading') resolve(toAnswer(message, fileCount));
    });
    worker.once('error', (error: Error & { code?: string }) => {
      // V8 says this of the limit that the thread was given. Where the system refuses memory, it ends the whole process.
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
  if (end.kind === 'unusable') return answer('broken', 'schema unusable', end.reason, mendSchema);
  if (end.problems.length > 0) return refusal(end.problems);
  return answer('ok', 'parsed', fileCount === 1 ? '1 file parses' : `${fileCount} files parse`);
}

/** The same bytes end the same way at every try, whatever else the host does; before them there is nobody to blame. */
function judgeEnd(
  bound: Exceeded['bound'],
  reading: ParseProgress | undefined,
  config: ParseCheckConfig,
): CheckAnswer {
  if (reading?.from === 'bundle') return beyond({ bound, file: reading.path }, config);
  if (reading === undefined) return died(`it ran out of ${bound} before it started`);
  const text = `the schema ${reading.path} cannot be used: it needs more ${bound} than the check allows`;
  return answer('broken', 'schema unusable', text, mendSchema);
}

const mendSchema = 'Fix the schema on this host; the release is tried again.';

const given = {
  memory: ({ maxMemoryBytes }: ParseCheckConfig) => `${maxMemoryBytes} bytes of memory (\`memory\`)`,
  time: ({ timeoutMs }: ParseCheckConfig) => `${timeoutMs} ms of processor time (\`timeout\`)`,
  stack: () => 'the stack of a thread',
} as const;

function beyond(exceeded: Exceeded, config: ParseCheckConfig): CheckAnswer {
  const { bound, file } = exceeded;
  const what = given[bound](config);
  const mend =
    bound === 'stack' ? '' : `, or raise \`${bound === 'time' ? 'timeout' : 'memory'}\` of the check`;
  return {
    ...answer('refused', `too much ${bound}`, `${file}: parsing and checking it takes more than ${what}`),
    exceeded,
    hint: `Publish a smaller or simpler ${file}${mend}.`,
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

/** The thread's files are read when it begins: after an upgrade they are gone, or those of another version. */
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
