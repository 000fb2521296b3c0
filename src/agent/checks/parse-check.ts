// The built-in check: do the YAML and JSON files of a bundle parse, and do they fit a JSON Schema? Runs in a
// thread of its own, which is ended at its deadline or when it wants too much memory. Such an end is no
// verdict on the bundle. Owns the thread and the choice of files; parsing is core's.

import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import picomatch from '#picomatch';
import type { ParseCheckConfig } from '../../core/config/config.js';
import type { HookVerdict } from '../../core/cycle/hook-verdict.js';
import type { Manifest, ManifestFile } from '../../core/release/manifest.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { HookReport } from '../hooks/hook.js';
import type { ParseAnswer, ParseTask } from './parse-check-worker.js';

export interface ParseCheckOptions {
  readonly config: ParseCheckConfig;
  readonly treePath: string;
  readonly manifest: Manifest;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** Its text is every mistake, or why there is no verdict. Bounded. */
export type CheckAnswer = Pick<HookReport, 'verdict' | 'text'>;

const maxProblems = 20;
/** Text and buffers lie outside the bounded heap, so a file may only be a part of what the check may have. */
const memoryPerFileByte = 4;
const inBundle = 'bundle:';

/** Never throws for what a file or a schema holds, and never longer than the check's timeout. */
export async function runParseCheck(options: ParseCheckOptions): Promise<CheckAnswer> {
  const { config, manifest } = options;
  const matches = picomatch([...config.files], { dot: true });
  const files = manifest.files.filter(({ path }) => matches(path));
  if (files.length === 0)
    return answer('warned', 'nothing checked', `no file matches ${config.files.join(' ')}`);
  const tooLarge = files.find(({ sizeBytes }) => sizeBytes * memoryPerFileByte > config.maxMemoryBytes);
  if (tooLarge !== undefined) return outOfMemory(`${tooLarge.path} has ${tooLarge.sizeBytes} bytes`);
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
  const task = { treePath, maxProblems, files: files.map(({ path }) => path) };
  if (schema === undefined) return task;
  if (!schema.startsWith(inBundle)) return { ...task, schema: { path: schema, from: 'host' } };
  const inside = schema.slice(inBundle.length);
  if (!manifest.files.some(({ path }) => path === inside)) return undefined;
  // The schema itself need not fit the schema.
  const others = task.files.filter((path) => path !== inside);
  return { ...task, files: others, schema: { path: join(treePath, inside), from: 'bundle' } };
}

async function runWorker(
  task: ParseTask,
  { config, clock, signal }: ParseCheckOptions,
  fileCount: number,
): Promise<CheckAnswer> {
  const worker = new Worker(new URL('./parse-check-worker.js', import.meta.url), {
    workerData: task,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: Math.max(Math.ceil(config.maxMemoryBytes / 1_000_000), 8) },
  });
  const finished = new AbortController();
  using stop = joinSignals(signal, finished.signal);
  const deadline = clock.sleep(config.timeoutMs, stop.signal).then(() => {
    return signal?.aborted
      ? answer('broken', 'interrupted', 'the check was interrupted')
      : answer('broken', 'timed out', 'the files could not be parsed in time');
  });
  try {
    return await Promise.race([endOf(worker, fileCount), deadline]);
  } finally {
    finished.abort();
    await worker.terminate();
  }
}

function endOf(worker: Worker, fileCount: number): Promise<CheckAnswer> {
  return new Promise((resolve) => {
    worker.once('message', (message: ParseAnswer) => resolve(toAnswer(message, fileCount)));
    worker.once('error', (error: Error & { code?: string }) => {
      const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      resolve(isMemory ? outOfMemory('the files need more to be parsed') : died(error.message));
    });
    worker.once('exit', () => resolve(died('it ended without a verdict')));
  });
}

function toAnswer(end: ParseAnswer, fileCount: number): CheckAnswer {
  if (end.kind === 'unusable') return answer('broken', 'schema unusable', end.reason);
  if (end.problems.length > 0) return refusal(end.problems);
  return answer('ok', 'parsed', fileCount === 1 ? '1 file parses' : `${fileCount} files parse`);
}

function died(reason: string): CheckAnswer {
  return answer('broken', 'died', reason);
}

function refusal(problems: readonly string[]): CheckAnswer {
  const more = problems.length >= maxProblems ? ['there may be more'] : [];
  return answer('refused', 'mistakes', [...problems, ...more].join('\n'));
}

// On authentic bytes, yet no verdict: the next host may have the memory, and a good release must not be blocked.
function outOfMemory(what: string): CheckAnswer {
  return answer('broken', 'out of memory', `${what}: raise the memory of this check`);
}

function answer(kind: HookVerdict['kind'], reason: string, text: string): CheckAnswer {
  return { verdict: { kind, reason }, text };
}
