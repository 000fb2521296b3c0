// Chooses the verb for each worker: a reset, or a restart if a file changed that a running process cannot read again. The
// comparison starts from the generation that the worker used last, which may be older than the previous generation.
import { orUndefined } from '../../core/errors.js';
import { changedPaths, needsRestart, type PolicyFiles } from '../../core/release/affected-groups.js';
import { readBundles } from '../generations/generation-contents.js';
import { readGeneration } from '../generations/generations.js';
import type { Host } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';
import { type VerbOf, workerKey } from './worker-ledger.js';

export interface VerbOptions {
  /** The generation that workers are moved to. */
  readonly to: number;
  /** The generation that a worker without a ledger entry uses; absent before a first activation. */
  readonly from?: number;
  /** The entries of the workers before the move; absent: every worker counts as using `from`. */
  readonly workers?: Readonly<Record<string, WorkerLedger>>;
}

/**
 * @returns a function that gives the verb of a worker: `reset` for a group without restartWhen; else the pending action, if there
 *   is one; else `restart` if a file of restartWhen changed or an older generation cannot be compared; else `reset`
 */
export function verbsTo(host: Host, options: VerbOptions): VerbOf {
  const changedSince = changesTo(host, options.to);
  return ({ config }, worker) => {
    if (config.restartWhen === undefined) return 'reset';
    const entry = options.workers?.[workerKey(config.name, worker)];
    if (entry?.owed !== undefined) return entry.owed;
    const bases = possibleGenerations(options, entry);
    const changes = bases.map((base) => (base === 'unknown' ? undefined : changedSince(base)));
    return changes.some((one) => one === undefined || needsRestart(config, one)) ? 'restart' : 'reset';
  };
}

/**
 * Compares generations with the generation `to`, and reads each one once, however many workers use it.
 * @returns a function that gives the changed paths since a base generation (undefined: since an empty one), as changedPaths;
 *   it returns undefined if the base cannot be compared any more
 */
export function changesTo(
  host: Pick<Host, 'paths'>,
  to: number,
): (base: number | undefined) => readonly string[] | undefined {
  const after = memoizeByGeneration(() => readPolicyFiles(host, to));
  return memoizeByGeneration((base) => {
    const [before, now] = [readPolicyFiles(host, base), after(to)];
    return before && now && changedPaths(before, now);
  });
}

/** Caches the result for each generation, because the workers of a group use the same few. */
function memoizeByGeneration<T>(
  read: (generation: number | undefined) => T,
): (generation: number | undefined) => T {
  const known = new Map<number | undefined, T>();
  return (generation) => {
    const value = known.has(generation) ? (known.get(generation) as T) : read(generation);
    known.set(generation, value);
    return value;
  };
}

/** @returns the generations that a worker may use: both, if it confirmed one and was notified of another since */
function possibleGenerations(
  { from }: VerbOptions,
  entry: WorkerLedger | undefined,
): readonly (number | undefined | 'unknown')[] {
  if (entry === undefined) return [from];
  const { confirmed, state, wanted, appeared } = entry;
  if (confirmed === undefined) return [state === 'notified' ? wanted : 'unknown'];
  const isNotYetNotified = state === 'pending' && appeared === undefined;
  return isNotYetNotified || confirmed === wanted ? [confirmed] : [confirmed, wanted];
}

/** @returns undefined if the generation is no longer complete */
function readPolicyFiles(
  { paths }: Pick<Host, 'paths'>,
  generation: number | undefined,
): PolicyFiles | undefined {
  if (generation === undefined) return new Map();
  return orUndefined(() => readBundles(paths, readGeneration(paths, generation)));
}
