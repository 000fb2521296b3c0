// `writ pull --force` has staged every release again: what is damaged takes its new tree from there, by the same move as
// any repair. Decides; writes nothing.
import { isLinkDamage } from '../../core/status/scrub-state.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import type { CandidateBundle } from '../staging/candidate.js';
import type { Host } from '../state/host.js';
import { type ExaminedActive, examineActive } from './examine-active.js';
import { type RepairCandidate, replaceDamaged } from './repair-plan.js';

export interface ForcedRepair extends RepairCandidate {
  readonly active: ExaminedActive;
  /** Links, or a tree: records alone need no swap. */
  readonly needsSwap: 'yes' | 'no';
}

/**
 * @param candidate everything that is configured, staged again where it could be
 * @returns undefined when what is active is complete
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
  const needsSwap = repair.replaced.length > 0 || active.damage.some(isLinkDamage) ? 'yes' : 'no';
  return { active, ...repair, needsSwap };
}
