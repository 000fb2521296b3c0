// Counts the crashes of a candidate after its swap. Each cycle gives a candidate a new generation, so its releases identify
// it. Decides also which releases stay blocked after a commit. Pure: the ledger stores the count, recovery adds to it.
import type { Digest } from '../../core/names.js';

/** Manifest digests by bundle. Two bundles may have the same files, so a digest alone does not identify a release. */
export type ReleaseDigests = Readonly<Record<string, Digest>>;

/** How many cycles of a candidate crashed between its swap and its commit. */
export interface CrashCount {
  readonly manifestDigests: ReleaseDigests;
  readonly count: number;
}

/** @returns how often this candidate crashed; 0 if it shares no release with the counted candidate */
export function crashCountOf(known: CrashCount | undefined, candidate: ReleaseDigests): number {
  return known !== undefined && isSameCandidate(known.manifestDigests, candidate) ? known.count : 0;
}

/**
 * Counts one more crash. After two candidates in a row only the releases that both have are suspects. Otherwise a publish
 * to another bundle would reset the count of a release that crashes hosts.
 */
export function addCrash(known: CrashCount | undefined, candidate: ReleaseDigests): CrashCount {
  if (known === undefined || !isSameCandidate(known.manifestDigests, candidate))
    return { manifestDigests: candidate, count: 1 };
  return { manifestDigests: commonReleases(known.manifestDigests, candidate), count: known.count + 1 };
}

/** Two generations without a new release (repairs) count as the same candidate. */
function isSameCandidate(one: ReleaseDigests, other: ReleaseDigests): boolean {
  const isEmpty = Object.keys(one).length === 0 && Object.keys(other).length === 0;
  return isEmpty || Object.keys(commonReleases(one, other)).length > 0;
}

function commonReleases(one: ReleaseDigests, other: ReleaseDigests): ReleaseDigests {
  return Object.fromEntries(Object.entries(one).filter(([bundle, digest]) => other[bundle] === digest));
}

export interface CommittedMove {
  /** Names of the configured bundles. */
  readonly configured: readonly string[];
  /** All releases of the committed generation. */
  readonly active: ReleaseDigests;
  /** Names of the bundles that have another release after the move. */
  readonly changed: readonly string[];
}

/**
 * Removes the suspects that a commit clears. A bundle is cleared when it is not configured any more, when the move changed
 * its release, or when the suspect itself is active. A bundle stays suspect while only other bundles move.
 * @returns undefined if no suspect remains
 */
export function remainingSuspects(
  suspects: ReleaseDigests,
  { configured, active, changed }: CommittedMove,
): ReleaseDigests | undefined {
  const left = Object.entries(suspects).filter(
    ([bundle, digest]) =>
      configured.includes(bundle) && !changed.includes(bundle) && active[bundle] !== digest,
  );
  return left.length === 0 ? undefined : Object.fromEntries(left);
}
