// A release that names the release that it corrects (`fixes`, docs/adr/0059): where this acts, and how often. Pure. It shortens
// the waits of a bundle whose releases fail, and nothing else.
import type { ReleaseInfo } from '../../core/release/release.js';
import type { Ledger, UnsettledBundle } from '../state/ledger.js';
import type { RefusalEntry } from '../state/refusal-rules.js';

/** A publisher that calls each of its releases a correction would otherwise have every host swap at each poll. */
const maxCorrections = 3;

export interface CorrectedHost extends Pick<Ledger, 'bakes' | 'unsettled'> {
  readonly refusals: readonly Pick<RefusalEntry, 'bundle' | 'serial'>[];
  /** The active release of the bundle. */
  readonly active: Pick<ReleaseInfo, 'serial'> | undefined;
}

/** @returns true where the release that it names is active, baking, taken back or refused on this host */
export function isCorrectionOn(
  { bakes, unsettled, refusals, active }: CorrectedHost,
  { bundle, fixes }: Pick<ReleaseInfo, 'bundle' | 'fixes'>,
): boolean {
  if (fixes === undefined) return false;
  if (active?.serial === fixes || bakes?.[bundle]?.serial === fixes) return true;
  const failed = unsettled?.[bundle]?.failed ?? [];
  const refused = refusals.filter((one) => one.bundle === bundle);
  return [...failed, ...refused].some(({ serial }) => serial === fixes);
}

/** @returns false once three corrections became active and none of the releases has settled since */
export function passesAsCorrection({ corrections = 0 }: Pick<UnsettledBundle, 'corrections'>): boolean {
  return corrections < maxCorrections;
}
