// A missed release: verified metadata offers it, and this host does not have it although no operator or rule blocks it. Decides
// when it becomes stale and overdue, as freshness.ts does for the metadata. The caller passes the time.
import { type ErrorCode, WritError } from '../errors.js';
import { withoutUndefined } from '../given.js';
import { utcTimeText } from '../text/iso-time.js';

/** The state of one bundle that a host keeps until it has the offered release. */
export interface MissedRelease {
  /** The newest offered serial; left out if the role that lists the bundle could not be fetched. */
  readonly serial?: number;
  /** Epoch milliseconds: when the first missed release was offered; this host has not had the newest release since. */
  readonly sinceMs: number;
  /** Error code of the last attempt; left out while the first attempt runs. */
  readonly code?: ErrorCode;
  /** URL of the file that could not be fetched. */
  readonly url?: string;
}

/** `waiting`: missed for at most `release.staleAfter`. `stale`: longer. `overdue`: for `release.maxStale` or longer. */
export type MissedState = 'waiting' | 'stale' | 'overdue';

export interface MissedStatus extends MissedRelease {
  readonly state: MissedState;
}

export interface MissedFacts {
  /** Epoch milliseconds, at least the greatest time that the repository signed. */
  readonly nowMs: number;
  readonly staleAfterMs: number;
  /** Left out: the release is never overdue. */
  readonly maxStaleMs?: number | undefined;
  /** When a release first became overdue; it stays overdue after the clock was set back. */
  readonly overdueNotedMs?: number | undefined;
}

/**
 * @returns the missed release with its state: `waiting`, then `stale` after `staleAfter`, then `overdue` after
 * `maxStale`
 */
export function judgeMissedRelease(missed: MissedRelease, facts: MissedFacts): MissedStatus {
  const { nowMs, staleAfterMs, maxStaleMs = Number.POSITIVE_INFINITY, overdueNotedMs = 0 } = facts;
  const ageMs = Math.max(nowMs, overdueNotedMs) - missed.sinceMs;
  const isStale = ageMs > Math.min(staleAfterMs, maxStaleMs);
  const state = ageMs >= maxStaleMs ? 'overdue' : isStale ? 'stale' : 'waiting';
  return { ...missed, state };
}

/** @returns RELEASE_STALE, as status, health and history report it. @param bundle its name */
export function createMissedReleaseError(
  bundle: string,
  { serial, sinceMs, code, url, state }: MissedStatus,
): WritError {
  const what =
    serial === undefined ? `${bundle}: newer releases` : `${bundle} ${serial} is not active: newer releases`;
  const offered = `${serial === undefined ? 'may be' : 'are'} offered since ${utcTimeText(sinceMs)}`;
  const limit = state === 'overdue' ? ', longer than `release.maxStale`' : '';
  const why =
    code === undefined
      ? ', still being fetched'
      : `, last with [${code}]${url === undefined ? '' : ` ${url}`}`;
  const facts = withoutUndefined<Record<string, unknown>>({ bundle, serial, sinceMs, state, code, url });
  return new WritError('RELEASE_STALE', `${what} ${offered}${limit}${why}`, { facts });
}
