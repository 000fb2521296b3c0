// The remembered refusals for the status report and `writ refusals`: current ones, of releases that could still be tried, and older
// ones. Reads only; state/refusals decides which refusals are remembered, and how long.
import type { CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { isWritError } from '../../core/errors.js';
import type { RefusalsResult } from '../../core/protocol/control-protocol.js';
import type { RefusalStatus, RememberedRefusal } from '../../core/status/status.js';
import { type ActiveReleases, readActiveReleases } from '../generations/generation-contents.js';
import type { Host } from '../state/host.js';
import { type BundleOffer, isCurrentRefusal, type RefusalEntry } from '../state/refusal-rules.js';

export interface RefusalView extends Pick<Host, 'config' | 'refusals'> {
  readonly client: Pick<Host['client'], 'status' | 'knownTarget'>;
}

/**
 * @returns all remembered refusals, the oldest first; state `standing` for the release that the server offers now (if that is not
 *   known: with no newer serial active), else `older`
 * @throws WritError STATE_DAMAGED
 */
export function rememberedRefusals(
  host: RefusalView,
  active: ActiveReleases | undefined,
): readonly RememberedRefusal[] {
  return host.refusals.read().refusals.map((refusal) => {
    const { manifestDigest: _, message, ...one } = refusal;
    const state = isCurrentRefusal(refusal, offerOf(host, refusal, active)) ? 'standing' : 'older';
    return { ...one, reason: message, state };
  });
}

/** @returns the result of `writ refusals`. @throws WritError STATE_DAMAGED */
export function listRefusals(host: RefusalView & Pick<Host, 'paths'>): RefusalsResult {
  const refusals = rememberedRefusals(host, readActiveReleases(host.paths));
  return { schema: 1, type: 'refusals.result', refusals };
}

/**
 * @returns members of a status report: refusals that apply now (`standing`); olderRefusals, the number of others, left out for 0
 */
export function refusalMembers(remembered: readonly RememberedRefusal[]): {
  readonly refusals: readonly RefusalStatus[];
  readonly olderRefusals?: number;
} {
  const standing = remembered.filter((one) => one.state === 'standing');
  const older = remembered.length - standing.length;
  return {
    refusals: standing.map(({ state: _, tries: _tries, refusedWith: _with, ...one }) => one),
    ...(older === 0 ? {} : { olderRefusals: older }),
  };
}

/** Whether a problem of the last cycle is a remembered refusal, which the member `refusals` already reports. */
export function isRememberedRefusal(
  { code, message }: Problem,
  remembered: readonly RememberedRefusal[],
  last: CycleResult | undefined,
): boolean {
  return remembered.some(
    (one) =>
      one.code === code &&
      // The remembered reason continues with the output of the check.
      one.reason.startsWith(message) &&
      last?.bundles.some(({ bundle, toSerial }) => bundle === one.bundle && toSerial === one.serial) === true,
  );
}

function offerOf(
  { config, client }: RefusalView,
  { bundle }: RefusalEntry,
  active: ActiveReleases | undefined,
): BundleOffer {
  const configured = config.bundles.find((one) => one.name === bundle);
  const activeSerial = active?.records.get(bundle)?.release.serial;
  if (configured === undefined) return { offered: 'none', activeSerial };
  try {
    const target = client.knownTarget(bundle, configured.channel);
    const otherwise = client.status() === undefined ? 'unknown' : 'none';
    return { offered: target?.release.manifest.digest ?? otherwise, activeSerial };
  } catch (error) {
    // Unreadable stored metadata is reported as a problem of its own.
    if (!isWritError(error)) throw error;
    return { offered: 'unknown', activeSerial };
  }
}
