// The remembered refusals as status and `writ refusals` tell them: those of releases that could be tried still, and those
// that newer releases have made history. Reads only; what is remembered, and for how long, is state/refusals'.
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

/** @returns what is remembered, the oldest first. @throws WritError STATE_DAMAGED */
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

/** @returns what `writ refusals` lists. @throws WritError STATE_DAMAGED */
export function listRefusals(host: RefusalView & Pick<Host, 'paths'>): RefusalsResult {
  const refusals = rememberedRefusals(host, readActiveReleases(host.paths));
  return { schema: 1, type: 'refusals.result', refusals };
}

/** @returns the members of a status report */
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

/** A no of the last cycle that is remembered against a release is said by the member `refusals`, and not twice. */
export function isRemembered(
  { code, message }: Problem,
  remembered: readonly RememberedRefusal[],
  last: CycleResult | undefined,
): boolean {
  return remembered.some(
    (one) =>
      one.code === code &&
      // What a check wrote follows in its memory.
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
    // What is stored of the repository cannot be read: a problem of its own.
    if (!isWritError(error)) throw error;
    return { offered: 'unknown', activeSerial };
  }
}
