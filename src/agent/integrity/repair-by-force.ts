// `writ pull --force` has staged every release anew: what is damaged takes its new tree from there, by the same move as
// any repair. Decides; writes nothing.
import { type DamageFound, isOfLinks } from '../../core/status/scrub-state.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import type { CandidateBundle } from '../staging/candidate.js';
import type { Host } from '../state/host.js';
import { type ExaminedActive, examineActive } from './examine-active.js';
import type { RepairCandidate } from './repair-plan.js';

export interface ForcedRepair extends RepairCandidate {
  readonly active: ExaminedActive;
  /** Links, or a tree: records alone need no swap. */
  readonly needsSwap: 'yes' | 'no';
}

/**
 * @param candidate everything that is configured, staged anew where it could be
 * @returns undefined when what is active is whole
 * @throws WritError INTERRUPTED, DISK_*
 */
export async function planForcedRepair(
  host: Host,
  candidate: readonly CandidateBundle[],
  signal: AbortSignal,
): Promise<ForcedRepair | undefined> {
  const active = await examineActive(host, { contents: 'digests', pace: unboundedPace(signal) });
  if (active === undefined || active.damage.length === 0) return undefined;
  const { damage } = active;
  const isDamaged = (name: string, test: (one: DamageFound) => boolean): boolean =>
    damage.some((one) => one.bundle === name && test(one));
  const nameOf = (one: CandidateBundle): string => one.selection.bundle.name;
  const replaced = candidate
    .filter((one) => one.staged !== undefined)
    .map(nameOf)
    .filter((name) =>
      isDamaged(name, ({ part }) => part === 'tree' || part === 'manifest' || part === 'record'),
    );
  const records = candidate.flatMap((one) =>
    one.staged !== undefined && !replaced.includes(nameOf(one)) && isDamaged(nameOf(one), () => true)
      ? [one.staged]
      : [],
  );
  const hasWrongLinks = damage.some(isOfLinks);
  return {
    active,
    candidate: candidate.map((one) => (replaced.includes(nameOf(one)) ? one : asItIs(one, active))),
    records,
    replaced,
    needsSwap: replaced.length > 0 || hasWrongLinks ? 'yes' : 'no',
  };
}

/** The tree of a bundle that is whole is never touched. */
function asItIs(one: CandidateBundle, { wanted }: ExaminedActive): CandidateBundle {
  const found = wanted.bundles.find(({ bundle }) => bundle === one.selection.bundle.name);
  if (found === undefined) return one;
  const { selection, manifest } = one;
  return { selection, manifest, treePath: found.treePath };
}
