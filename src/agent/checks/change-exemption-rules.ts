// Decides which releases a change check does not compare with the active one: a first release, and a return to an older
// release, must not fail because of their size. Pure.
import type { NamedRelease, ReleaseInfo } from '../../core/release/release.js';

export type ChangeExemption = 'first release' | 'withdrawal' | 'settled before';

export interface ChangeExemptionFacts {
  /** The active release; absent if there is none to compare with. */
  readonly active?: Pick<ReleaseInfo, 'serial'> | undefined;
  readonly offered: Pick<ReleaseInfo, 'bundle' | 'serial' | 'manifest' | 'withdrawn'>;
  /** Releases that settled on this host before. */
  readonly settled: readonly NamedRelease[];
}

/** @returns the reason to skip the comparison of the offered release; undefined if it is compared */
export function findChangeExemption(facts: ChangeExemptionFacts): ChangeExemption | undefined {
  const { active, offered, settled } = facts;
  if (active === undefined) return 'first release';
  // A newer release that withdraws the active one is compared, because its tree is new to this host.
  if (offered.serial < active.serial && offered.withdrawn.includes(active.serial)) return 'withdrawal';
  return settled.some((one) => isSameRelease(one, offered)) ? 'settled before' : undefined;
}

function isSameRelease(one: NamedRelease, other: NamedRelease): boolean {
  return (
    one.bundle === other.bundle &&
    one.serial === other.serial &&
    one.manifest.digest === other.manifest.digest
  );
}
