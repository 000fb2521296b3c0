// One candidate over several cycles: each gives it a new generation, its releases stay the same. Owns how it is known
// again, and when what is held against it ends. Pure; the ledger keeps it, recovery counts.
import type { Digest } from '../../core/names.js';

/** Manifest digests by bundle. Two bundles may hold the same files: a digest alone names no release. */
export type ReleaseDigests = Readonly<Record<string, Digest>>;

/** How often a candidate did not come to its end behind its swap. */
export interface CrashCount {
  readonly manifestDigests: ReleaseDigests;
  readonly count: number;
}

/** @returns crashes of this candidate so far; 0 for one that shares no release with the counted one */
export function crashesOf(known: CrashCount | undefined, candidate: ReleaseDigests): number {
  return known !== undefined && isSameCandidate(known.manifestDigests, candidate) ? known.count : 0;
}

/**
 * Counts one more. Of two candidates in a row the releases that both had are the suspects: a publisher who publishes
 * something else beside a release that brings hosts down must not start its count again each time.
 */
export function countCrash(known: CrashCount | undefined, candidate: ReleaseDigests): CrashCount {
  if (known === undefined || !isSameCandidate(known.manifestDigests, candidate))
    return { manifestDigests: candidate, count: 1 };
  return { manifestDigests: common(known.manifestDigests, candidate), count: known.count + 1 };
}

/** A generation with no release of its own (a repair) is the same candidate as the next such. */
function isSameCandidate(one: ReleaseDigests, other: ReleaseDigests): boolean {
  const isEmpty = Object.keys(one).length === 0 && Object.keys(other).length === 0;
  return isEmpty || Object.keys(common(one, other)).length > 0;
}

function common(one: ReleaseDigests, other: ReleaseDigests): ReleaseDigests {
  return Object.fromEntries(Object.entries(one).filter(([bundle, digest]) => other[bundle] === digest));
}

export interface Commit {
  /** Names of the bundles that the configuration has. */
  readonly configured: readonly string[];
  /** Releases of the committed generation. */
  readonly active: ReleaseDigests;
  /** Bundles that the move brought a release of. */
  readonly changed: readonly string[];
}

/**
 * What a commit leaves of a list of suspects: a bundle that got another release, or this very one, is suspect no more;
 * one that only waited while others moved still is.
 * @returns undefined when nobody is left
 */
export function stillSuspect(
  suspects: ReleaseDigests,
  { configured, active, changed }: Commit,
): ReleaseDigests | undefined {
  const left = Object.entries(suspects).filter(
    ([bundle, digest]) =>
      configured.includes(bundle) && !changed.includes(bundle) && active[bundle] !== digest,
  );
  return left.length === 0 ? undefined : Object.fromEntries(left);
}
