// What a bake time waits for that does not pass, or that cannot end yet. Pure. For people: it decides nothing.
import type { BakeWait } from '../../core/status/status.js';
import type { Bake } from '../state/ledger.js';
import { bakeLeftMs, isUnseen, isUntaken } from './bake-rules.js';
import { isContactOpen } from './contact-rules.js';
import { type BakingGroup, doubtedWorkers, silentWorkers, untakenGroups } from './evidence-rules.js';

export interface BakeWaitFacts {
  /** Those that use the bundle. */
  readonly groups: readonly BakingGroup[];
  readonly forMs: number;
  readonly nowMs: number;
  /** The host is paused, and a group has a probe. */
  readonly isUnasked: boolean;
}

/** @returns why the bake time does not pass, else why the release has not settled after it; undefined while the time passes */
export function findBakeWait(
  bake: Bake,
  { groups, forMs, nowMs, isUnasked }: BakeWaitFacts,
): BakeWait | undefined {
  if (isUntaken(bake)) {
    const untaken = untakenGroups(groups);
    // Where the last look found a process dead, the ledger does not have it.
    return { what: 'worker', of: untaken.length > 0 ? untaken : groups.map(({ group }) => group) };
  }
  if (isUnseen(bake, nowMs)) return { what: 'agent' };
  if (isUnasked) return { what: 'pause' };
  const silent = silentWorkers(groups);
  if (silent.length > 0) return { what: 'probe', of: silent };
  if (bakeLeftMs(bake, forMs) > 0) return undefined;
  const doubted = doubtedWorkers(groups);
  if (doubted.length > 0) return { what: 'probe', of: doubted };
  return isContactOpen(bake.contact, { ...bake, nowMs }) ? { what: 'contact' } : undefined;
}
