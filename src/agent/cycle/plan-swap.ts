// Plans the move for a candidate that passed its checks: an update, a repair, or none. Writes nothing. The integrity module
// decides which parts of a damaged policy are replaced.

import type { ReleaseInfo } from '../../core/release/release.js';
import { affectedGroups } from '../activation/affected-groups.js';
import type { Move } from '../activation/move.js';
import type { ActivePolicy } from '../generations/generation-contents.js';
import { planForcedRepair } from '../integrity/repair-by-force.js';
import { moveToRepaired } from '../integrity/repair-plan.js';
import { withAccepted, withChannel } from '../select/accepted-releases.js';
import { withoutHoldsUpTo } from '../select/holds-and-blocks.js';
import { isCorrectionOn } from '../settled/correction-rules.js';
import { withCorrection } from '../settled/settled-ledger.js';
import {
  type CandidateBundle,
  type CandidateOptions,
  hasSameContent,
  listChangedPaths,
  type PlacedBundle,
} from '../staging/candidate.js';
import type { StagedBundle } from '../staging/staged-bundle.js';
import type { Host } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';
import { recordBlamedReleases } from '../state/refusals.js';

/** The plan for a candidate. `records`: releases with an intact tree and a damaged retained copy. */
export type SwapPlan = { readonly records: readonly StagedBundle[] } & (
  | { readonly kind: 'none' }
  | { readonly kind: 'swap'; readonly candidate: readonly PlacedBundle[]; readonly move: Move }
);

export interface SwapFacts extends CandidateOptions {
  /** The active policy; undefined before the first activation. */
  readonly policy: ActivePolicy | undefined;
  readonly candidate: readonly CandidateBundle[];
  readonly force: 'yes' | 'no';
}

/**
 * Plans the move to a candidate that passed its checks. Scans the active generation only with `force`; writes nothing.
 * @returns `swap` with the bundles to place and the move: an update if a serial or manifest differs from the active policy, or
 *   with `force` a repair if its links or a tree are damaged. `none` for the same content without such damage, and for an empty
 *   candidate
 * @returns `records`: with `force`, releases with an intact tree and damaged retained files, which must be written again;
 *   otherwise empty
 * @throws WritError INTERRUPTED when `signal` aborts during the scan; DISK_* if the scan cannot read
 */
export async function planSwap(host: Host, facts: SwapFacts): Promise<SwapPlan> {
  const { policy, candidate, force, generation, staging, signal } = facts;
  const repair = force === 'yes' ? await planForcedRepair(host, candidate, signal) : undefined;
  const records = repair?.records ?? [];
  // Damage must not cause a swap to a generation without bundles.
  if (candidate.length === 0) return { kind: 'none', records };
  if (!hasSameContent(candidate, policy))
    return { kind: 'swap', records: [], candidate, move: moveTo(host, facts, repair?.replaced ?? []) };
  if (repair?.needsSwap !== true) return { kind: 'none', records };
  const move = moveToRepaired(host, { ...repair, to: generation, staging, signal });
  return { kind: 'swap', records, candidate: repair.candidate, move };
}

/** @param damaged bundles with a damaged active tree: their groups are affected, because workers may have read the damage */
function moveTo(
  host: Host,
  { policy, candidate, generation, staging, signal }: SwapFacts,
  damaged: readonly string[],
): Move {
  const releases = candidate.flatMap(({ staged }) => (staged ? [staged.release] : []));
  const paths = listChangedPaths(policy?.bundles ?? new Map(), candidate);
  return {
    kind: 'update',
    from: policy?.generation.number,
    to: generation,
    groups: affectedGroups(host, { paths, bundles: damaged }),
    releases,
    staging,
    signal,
    ledger: (ledger) => acceptAll(countCorrections(host, { ledger, policy, releases }), candidate),
    onRefused: (error, groups) => recordBlamedReleases(host, releases, error, groups),
  };
}

interface NewPolicy extends Pick<SwapFacts, 'policy'> {
  /** The ledger before the swap. */
  readonly ledger: Ledger;
  readonly releases: readonly ReleaseInfo[];
}

function countCorrections(host: Host, { ledger, policy, releases }: NewPolicy): Ledger {
  const { refusals } = host.refusals.read();
  const corrections = releases.filter((release) => {
    const active = policy?.bundles.get(release.bundle)?.record.release;
    return isCorrectionOn({ ...ledger, refusals, active }, release);
  });
  return corrections.reduce((all, { bundle }) => withCorrection(all, bundle), ledger);
}

function acceptAll(ledger: Ledger, candidate: readonly CandidateBundle[]): Ledger {
  return candidate.reduce((all, { staged, selection }) => {
    if (staged === undefined) return all;
    const { release } = staged;
    const accepted = withoutHoldsUpTo(withAccepted(all, release), release);
    return withChannel(accepted, { bundle: selection.bundle.name, channel: release.channel });
  }, ledger);
}
