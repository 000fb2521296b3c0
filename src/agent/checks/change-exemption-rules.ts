// Which releases a check of kind `change` does not compare with the active one: a way back, and a host without a policy, must
// not fail because of a size. Pure.
import type { NamedRelease, ReleaseInfo } from '../../core/release/release.js';

export type ChangeExemption = 'first release' | 'withdrawal' | 'settled before';

export interface ChangeExemptionFacts {
  /** The release that is active now; left out: none can be compared with. */
  readonly active?: Pick<ReleaseInfo, 'serial'> | undefined;
  readonly offered: Pick<ReleaseInfo, 'bundle' | 'serial' | 'manifest' | 'withdrawn'>;
  /** Releases that settled on this host before. */
  readonly settled: readonly NamedRelease[];
}

/** @returns the reason for which the offered release is not compared; undefined when it is. */
export function findChangeExemption(facts: ChangeExemptionFacts): ChangeExemption | undefined {
  const { active, offered, settled } = facts;
  if (active === undefined) return 'first release';
  // A newer release that withdraws the active one is not a way back: its tree is as new as any other.
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
