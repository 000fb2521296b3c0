// The repair by `writ pull --force`, which has staged every release again: damaged bundles get the new trees, with the move of an
// ordinary repair. Decides; writes nothing.
import { isLinkDamage } from '../../core/status/scrub-state.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import type { CandidateBundle } from '../staging/candidate.js';
import type { Host } from '../state/host.js';
import { type ExaminedActive, examineActive } from './examine-active.js';
import { type RepairCandidate, replaceDamaged } from './repair-plan.js';

export interface ForcedRepair extends RepairCandidate {
  readonly active: ExaminedActive;
  /** True if links or a tree are damaged; records alone need no swap. */
  readonly needsSwap: boolean;
}

/**
 * @param candidate all configured bundles, staged again if possible
 * @returns undefined if the active generation is complete
 * @throws WritError INTERRUPTED, DISK_*
 */
export async function planForcedRepair(
  host: Host,
  candidate: readonly CandidateBundle[],
  signal: AbortSignal,
): Promise<ForcedRepair | undefined> {
  const active = await examineActive(host, { contents: 'digests', pace: unboundedPace(signal) });
  if (active === undefined || active.damage.length === 0) return undefined;
  const repair = await replaceDamaged(host, active.wanted.bundles, candidate);
  const needsSwap = repair.replaced.length > 0 || active.damage.some(isLinkDamage);
  return { active, ...repair, needsSwap };
}
