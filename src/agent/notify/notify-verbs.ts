// How each worker takes over a generation: by a reset, or by a restart where what it cannot read again has changed. Level,
// not edge: what counts is what that worker used last, not what the cycle happened to change.
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
  /** What a worker uses of which nothing is known; left out before a first activation. */
  readonly from?: number;
  /** What each worker last said, as of before the move; left out where it counts for nothing. */
  readonly workers?: Readonly<Record<string, WorkerLedger>>;
}

/** @returns how a worker is notified; `restart` where its generation cannot be compared any more, or one is owed still */
export function verbsTo(host: Host, options: VerbOptions): VerbOf {
  const changedSince = changesTo(host, options.to);
  return ({ config }, worker) => {
    if (config.restartWhen === undefined) return 'reset';
    const entry = options.workers?.[workerKey(config.name, worker)];
    if (entry?.owed !== undefined) return entry.owed;
    const bases = mayUse(options, entry);
    const changes = bases.map((base) => (base === 'unknown' ? undefined : changedSince(base)));
    return changes.some((one) => one === undefined || needsRestart(config, one)) ? 'restart' : 'reset';
  };
}

/**
 * The difference between what somebody uses and a generation; each is read once, however many workers use it.
 * @returns for a generation, or for none at all, the paths as changedPaths; undefined where it cannot be compared any more
 */
export function changesTo(
  host: Pick<Host, 'paths'>,
  to: number,
): (base: number | undefined) => readonly string[] | undefined {
  const after = once(() => filesOf(host, to));
  return once((base) => {
    const [before, now] = [filesOf(host, base), after(to)];
    return before && now && changedPaths(before, now);
  });
}

/** Every worker of a set has read the same few generations. */
function once<T>(read: (generation: number | undefined) => T): (generation: number | undefined) => T {
  const known = new Map<number | undefined, T>();
  return (generation) => {
    const value = known.has(generation) ? (known.get(generation) as T) : read(generation);
    known.set(generation, value);
    return value;
  };
}

/** Whoever proved one generation and was notified of another one since uses either. */
function mayUse(
  { from }: VerbOptions,
  entry: WorkerLedger | undefined,
): readonly (number | undefined | 'unknown')[] {
  if (entry === undefined) return [from];
  const { confirmed, state, wanted, appeared } = entry;
  if (confirmed === undefined) return [state === 'notified' ? wanted : 'unknown'];
  const isNotYetNotified = state === 'pending' && appeared === undefined;
  return isNotYetNotified || confirmed === wanted ? [confirmed] : [confirmed, wanted];
}

/** @returns undefined where the generation is not whole any more */
function filesOf({ paths }: Pick<Host, 'paths'>, generation: number | undefined): PolicyFiles | undefined {
  if (generation === undefined) return new Map();
  return orUndefined(() => readBundles(paths, readGeneration(paths, generation)));
}
