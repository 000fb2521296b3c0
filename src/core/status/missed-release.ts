// A release that verified metadata offers and that this host does not have, although nothing keeps it off on purpose. Owns
// how long that may last: the freshness of the release, beside that of the metadata. Pure: never asks the time.
import { type ErrorCode, WritError } from '../errors.js';
import { withoutUndefined } from '../given.js';
import { utcTimeText } from '../text/iso-time.js';

/** What a host remembers of one bundle until it has what is offered. */
export interface MissedRelease {
  /** The newest serial that was offered; left out where the role that lists the bundle could not be fetched. */
  readonly serial?: number;
  /** When the first release was offered that this host missed; it has not had the newest one since. Epoch milliseconds. */
  readonly sinceMs: number;
  /** Why the last attempt failed; left out while the first one runs. */
  readonly code?: ErrorCode;
  /** Of the file that could not be had. */
  readonly url?: string;
}

/** `waiting`: not for longer than `release.staleAfter`. `stale`: for longer. `overdue`: for longer than `release.maxStale`. */
export type MissedState = 'waiting' | 'stale' | 'overdue';

export interface MissedStatus extends MissedRelease {
  readonly state: MissedState;
}

export interface MissedFacts {
  /** Not before the greatest time that the repository has signed. */
  readonly nowMs: number;
  readonly staleAfterMs: number;
  /** Left out: it is never overdue. */
  readonly maxStaleMs?: number | undefined;
  /** When a release was first known to be overdue; no clock that is set back ends that. */
  readonly overdueNotedMs?: number | undefined;
}

export function judgeMissed(missed: MissedRelease, facts: MissedFacts): MissedStatus {
  const { nowMs, staleAfterMs, maxStaleMs = Number.POSITIVE_INFINITY, overdueNotedMs = 0 } = facts;
  const ageMs = Math.max(nowMs, overdueNotedMs) - missed.sinceMs;
  const isStale = ageMs > Math.min(staleAfterMs, maxStaleMs);
  const state = ageMs >= maxStaleMs ? 'overdue' : isStale ? 'stale' : 'waiting';
  return { ...missed, state };
}

/** @returns RELEASE_STALE, as status, health and history say it. @param bundle its name */
export function missedError(bundle: string, { serial, sinceMs, code, url, state }: MissedStatus): WritError {
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
