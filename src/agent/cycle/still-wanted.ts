// Decides whether a cycle continues with its selected releases after other jobs ran. Sends no request.
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { isWritError } from '../../core/errors.js';
import { withdraws } from '../../core/release/withdrawn.js';
import type { ActiveBundle, PartialPolicy } from '../generations/generation-contents.js';
import { activeGenerationNumber } from '../generations/generations.js';
import type { Offers } from '../select/find-offers.js';
import { isStillSelected, type LeavableBundles, selectReleases } from '../select/select-releases.js';
import { type Selection, type Taken, taken } from '../select/selection.js';
import type { Host } from '../state/host.js';

/** The selection of a cycle, and the facts that it used. */
export interface Selected {
  readonly active: PartialPolicy;
  readonly selections: readonly Selection[];
  /** Bundles that a worker refused earlier in this cycle, with their results. */
  readonly refusedNow: ReadonlyMap<string, BundleResult>;
  readonly leavable: LeavableBundles;
}

type Force = 'yes' | 'no';

/** @returns false when another generation is active, or a pause, a hold or a refusal now blocks a selected release */
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
 * A newer release waits for the next cycle: with frequent releases on a slow network no download would end otherwise.
 * @param offers of a later refresh
 * @returns false when a selected release is withdrawn or no longer listed, or when the host can leave a withdrawn release
 */
export function isStillOffered(
  host: Host,
  force: Force,
  { active, selections, refusedNow, offers }: Selected & { readonly offers: Offers },
): boolean {
  const before = taken(selections);
  const isOffered = before.every(({ bundle, target }) => {
    const offer = offers.get(bundle.name);
    // On an error of the refresh the selected release still counts as offered, because it was signed.
    return isWritError(offer) || (offer !== undefined && !withdraws(offer.release, target.release));
  });
  const bundles: ReadonlyMap<string, ActiveBundle> = active.policy?.bundles ?? new Map();
  const leavesWithdrawn = ({ bundle, target }: Taken): boolean =>
    withdraws(target.release, bundles.get(bundle.name)?.record.release);
  const known = before.filter(leavesWithdrawn).map(({ bundle }) => bundle.name);
  // A withdrawal with a refused replacement ends no download, because the cycle would not select the replacement.
  const leavable = new Set(bundles.keys());
  const now = taken(selectReleases(host, offers, { active: bundles, force, refusedNow, leavable }));
  return isOffered && now.filter(leavesWithdrawn).every(({ bundle }) => known.includes(bundle.name));
}
