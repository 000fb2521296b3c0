// Why a newer release waits although nothing refuses it: releases of its bundle were taken back again and again, or none of them
// could settle because each was replaced too soon. Pure. Without this a publisher that is broken, and publishes every few
// minutes, would have each of its releases tried on every host.
import { computeBackoffMs } from '../../core/backoff.js';
import { WritError } from '../../core/errors.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import type { Ledger } from '../state/ledger.js';
import { passesAsCorrection } from './correction-rules.js';

/** The first restore delays nothing; from the second one on the gap doubles. */
const backoff = { firstMs: 300_000, maxMs: 3_600_000 };
/** So many bake times may go by without a settled release before releases are left out. */
const maxUnsettledBakes = 3;

export interface BakeGap {
  /** It corrects a release that is in use or failed on this host. */
  readonly isCorrection: boolean;
  readonly forMs: number;
  /** The bundles that settle together with this one, itself among them. */
  readonly set: readonly string[];
  readonly nowMs: number;
}

/** @returns BAKE_GAP with the time from which the release is taken; undefined where it need not wait */
export function judgeBakeGap(
  { bundle, serial }: Pick<ReleaseInfo, 'bundle' | 'serial'>,
  { unsettled, bakes }: Pick<Ledger, 'unsettled' | 'bakes'>,
  { isCorrection, forMs, set, nowMs }: BakeGap,
): WritError | undefined {
  const known = unsettled?.[bundle];
  if (known === undefined) return undefined;
  if (isCorrection && passesAsCorrection(known)) return undefined;
  const { restores, restoredAtMs = 0, sinceMs } = known;
  const gapEndMs = restores < 2 ? 0 : restoredAtMs + computeBackoffMs(restores - 1, backoff);
  // A time of the future was noted by a clock that was set back since.
  if (restoredAtMs <= nowMs && gapEndMs > nowMs) {
    const why = `${restores} releases of ${bundle} were taken back since the last one that settled`;
    return gapError({ bundle, serial }, gapEndMs, why);
  }
  const bake = bakes?.[bundle];
  if (bake === undefined || bake.failure !== undefined || sinceMs > nowMs) return undefined;
  if (nowMs - sinceMs < maxUnsettledBakes * forMs) return undefined;
  const starts = set.flatMap((name) => bakes?.[name]?.startedAtMs ?? []);
  const untilMs = Math.max(...starts) + forMs;
  if (untilMs <= nowMs) return undefined;
  return gapError(
    { bundle, serial },
    untilMs,
    `no release of ${bundle} has settled for a long time, and ${bake.serial} is in its bake time`,
  );
}

function gapError(
  { bundle, serial }: Pick<ReleaseInfo, 'bundle' | 'serial'>,
  untilMs: number,
  why: string,
): WritError {
  const text = `${bundle} ${serial} waits until ${utcTimeText(untilMs)}: ${why}`;
  return new WritError('BAKE_GAP', text, { facts: { bundle, serial, untilMs } });
}
