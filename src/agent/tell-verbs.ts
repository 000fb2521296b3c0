// How each worker takes over a generation: by a reset, or by a restart where what it cannot read anew has changed. Level,
// not edge: what counts is what that worker used last, not what the cycle happened to change.
import { orUndefined } from '../core/errors.js';
import type { Manifest } from '../core/manifest.js';
import type { TellVerb } from '../workers/tell-worker.js';
import { bundlesOf } from './active-bundles.js';
import { changedPaths, needsRestart } from './changed-groups.js';
import { readGeneration } from './generations.js';
import type { Host } from './host.js';
import type { WorkerLedger } from './ledger.js';
import { type WorkerGroup, workerKey } from './worker-groups.js';

export interface VerbOptions {
  /** The generation that workers are moved to. */
  readonly to: number;
  /** What a worker uses of which nothing is known; left out before a first activation. */
  readonly from?: number;
  /** What each worker last said, as of before the move; left out where it counts for nothing. */
  readonly workers?: Readonly<Record<string, WorkerLedger>>;
}

/** @returns how a worker is told; `restart` where its generation cannot be compared any more */
export function verbsTo(host: Host, options: VerbOptions): (group: WorkerGroup, worker: string) => TellVerb {
  const known = new Map<number | undefined, Manifests | undefined>();
  const manifests = (generation: number | undefined): Manifests | undefined => {
    if (!known.has(generation)) known.set(generation, manifestsOf(host, generation));
    return known.get(generation);
  };
  const changes = new Map<number | undefined, readonly string[] | undefined>();
  const changedSince = (base: number | undefined): readonly string[] | undefined => {
    if (!changes.has(base)) changes.set(base, difference(manifests(base), manifests(options.to)));
    return changes.get(base);
  };
  return ({ config }, worker) => {
    if (config.restartWhen === undefined) return 'reset';
    const bases = mayUse(options, options.workers?.[workerKey(config.name, worker)]);
    const changes = bases.map((base) => (base === 'unknown' ? undefined : changedSince(base)));
    return changes.some((one) => one === undefined || needsRestart(config, one)) ? 'restart' : 'reset';
  };
}

/** Whoever proved one generation and was told of another one since uses either. */
function mayUse(
  { from }: VerbOptions,
  entry: WorkerLedger | undefined,
): readonly (number | undefined | 'unknown')[] {
  if (entry === undefined) return [from];
  const { confirmed, state, wanted, appeared } = entry;
  if (confirmed === undefined) return [state === 'told' ? wanted : 'unknown'];
  const isUntold = state === 'waiting' && appeared === undefined;
  return isUntold || confirmed === wanted ? [confirmed] : [confirmed, wanted];
}

type Manifests = ReadonlyMap<string, Manifest>;

function manifestsOf({ paths }: Host, generation: number | undefined): Manifests | undefined {
  if (generation === undefined) return new Map();
  const bundles = orUndefined(() => bundlesOf(paths, readGeneration(paths, generation)));
  return bundles && new Map([...bundles].map(([name, { manifest }]) => [name, manifest]));
}

function difference(before: Manifests | undefined, after: Manifests | undefined): string[] | undefined {
  if (before === undefined || after === undefined) return undefined;
  const names = new Set([...before.keys(), ...after.keys()]);
  return changedPaths(
    [...names].map((bundle) => {
      const [old, now] = [before.get(bundle), after.get(bundle)];
      return { bundle, ...(old ? { before: old } : {}), ...(now ? { after: now } : {}) };
    }),
  );
}
