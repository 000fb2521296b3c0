// Whether a cycle goes on with the releases that it selected, after other jobs had their turn. Asks no server.
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { isWritError } from '../../core/errors.js';
import { withdraws } from '../../core/release/withdrawn.js';
import type { ActiveBundle, ReadablePolicy } from '../generations/generation-contents.js';
import { activeGenerationNumber } from '../generations/generations.js';
import type { Offers } from '../select/find-offers.js';
import { isStillSelected, type LeavableBundles, selectReleases } from '../select/select-releases.js';
import { type Selection, type Taken, taken } from '../select/selection.js';
import type { Host } from '../state/host.js';

/** What a cycle selected, and on what ground. */
export interface Selected {
  readonly active: ReadablePolicy;
  readonly selections: readonly Selection[];
  /** Bundles that a worker refused earlier in this cycle, with their results. */
  readonly refusedNow: ReadonlyMap<string, BundleResult>;
  readonly leavable: LeavableBundles;
}

type Force = 'yes' | 'no';

/** @returns false where another generation is active, or an order or a refusal keeps a release out by now */
export function isStillWanted(host: Host, force: Force, selected: Selected): boolean {
  const { selections, leavable } = selected;
  const { policy } = selected.active;
  if (activeGenerationNumber(host.paths) !== policy?.generation.number) return false;
  if (force === 'yes') return true;
  return taken(selections).every((one) => {
    const active = policy?.bundles.get(one.bundle.name);
    return isStillSelected(host, one, { active, leavable });
  });
}

/**
 * A release that is merely newer waits for the next cycle: a publisher that is quicker than the line would let nothing arrive.
 * @param offers of a later refresh
 * @returns false where a selected release is withdrawn or not listed any more, or where the host can leave a withdrawn release
 */
export function isStillOffered(
  host: Host,
  force: Force,
  { active, selections, refusedNow, offers }: Selected & { readonly offers: Offers },
): boolean {
  const before = taken(selections);
  const isOffered = before.every(({ bundle, target }) => {
    const offer = offers.get(bundle.name);
    // What cannot be known now was signed when it was selected.
    return isWritError(offer) || (offer !== undefined && !withdraws(offer.release, target.release));
  });
  const bundles: ReadonlyMap<string, ActiveBundle> = active.policy?.bundles ?? new Map();
  const leavesWithdrawn = ({ bundle, target }: Taken): boolean =>
    withdraws(target.release, bundles.get(bundle.name)?.record.release);
  const known = before.filter(leavesWithdrawn).map(({ bundle }) => bundle.name);
  // A withdrawal to a release that is remembered as refused ends no download: the cycle would not take it.
  const leavable = new Set(bundles.keys());
  const now = taken(selectReleases(host, offers, { active: bundles, force, refusedNow, leavable }));
  return isOffered && now.filter(leavesWithdrawn).every(({ bundle }) => known.includes(bundle.name));
}
