// When the successor of a process that ended is notified. A daemon that dies of each notification would otherwise be kept dying by
// Writ itself: the supervisor starts it, Writ notifies the new process, and so on. Pure.
import { computeBackoffMs } from '../../core/backoff.js';
import type { ProcessEnd, WorkerRuns } from '../state/ledger.js';

/** So many successors are notified without a gap: a daemon may need a moment to start. */
const promptNotices = 3;
const backoff = { firstMs: 60_000, maxMs: 3_600_000 };
/**
 * Within a bake time the first successor is notified without a gap, and the second one after a tenth of that time. The gap doubles
 * then: a process that ends only at its notification would otherwise count as a crash loop of the release.
 */
const bakeGap = { shareOfBake: 0.1, maxFirstMs: 60_000 };

/** Some daemons take a while to end after a notification, also where the bake time is short. */
const minLongRunMs = 600_000;
/** Older ends do not show what ends the present processes. */
const recentEnds = 16;

export interface SuccessorOptions {
  /** Bake time of the bundles that the worker uses; a process that lived as long ends the count. */
  readonly forMs: number;
  /** When the bake that runs now began; left out: none runs. */
  readonly bakeStartedAtMs?: number | undefined;
}

/** @returns epoch milliseconds before which the present process is not notified; 0 where it may be now */
export function successorNoticeAtMs(
  runs: WorkerRuns | undefined,
  { forMs, bakeStartedAtMs }: SuccessorOptions,
): number {
  const ends = runs?.ends ?? [];
  if (endsWithoutNotice(ends, forMs)) return 0;
  const isBaking = bakeStartedAtMs !== undefined;
  const inBakeMs = noticeInBakeAtMs(
    ends.filter((one) => isUnasked(one) && one.atMs >= (bakeStartedAtMs ?? Number.POSITIVE_INFINITY)),
    forMs,
  );
  // A release that was taken back may have ended the processes that it had.
  const isOfRow = (one: ProcessEnd): boolean =>
    isShort(one, forMs) && (isBaking || one.isAttributed !== true);
  const firstOfRow = 1 + ends.findLastIndex((one) => !isOfRow(one));
  const row = ends.slice(firstOfRow);
  const last = row.at(-1);
  if (last === undefined || row.length <= promptNotices) return inBakeMs;
  const gapMs = computeBackoffMs(row.length - promptNotices, backoff);
  return Math.max(inBakeMs, last.atMs + gapMs);
}

/**
 * The second of two processes in a row that Writ did not notify was not made by a notification either, so something else ended it,
 * and gaps would only leave its successors without the policy.
 */
function endsWithoutNotice(ends: readonly ProcessEnd[], forMs: number): boolean {
  const recent = ends.slice(-recentEnds);
  const shortestMs = Math.min(...recent.filter((one) => one.wasNotified === true).map((one) => one.livedMs));
  // A process that ends right after its start shows nothing about those that ran until they were notified.
  const isWithout = (one: ProcessEnd | undefined): boolean =>
    one !== undefined &&
    isShort(one, forMs) &&
    one.wasNotified !== true &&
    isComparable(one.livedMs, shortestMs);
  return recent.some((one, index) => isWithout(one) && isWithout(recent[index + 1]));
}

/** @param shortestMs of the notified processes; infinite without one */
function isComparable(livedMs: number, shortestMs: number): boolean {
  return !Number.isFinite(shortestMs) || livedMs * 2 >= shortestMs;
}

function noticeInBakeAtMs(inBake: readonly ProcessEnd[], forMs: number): number {
  const last = inBake.at(-1);
  if (last === undefined || inBake.length < 2) return 0;
  const firstMs = Math.min(bakeGap.maxFirstMs, bakeGap.shareOfBake * forMs);
  return last.atMs + computeBackoffMs(inBake.length - 1, { ...backoff, firstMs });
}

/** A stop or restart that the supervisor was asked for is a person's, and its successor is notified at once. */
function isUnasked({ kind }: ProcessEnd): boolean {
  return kind !== 'clean';
}

function isShort(end: ProcessEnd, forMs: number): boolean {
  return isUnasked(end) && end.livedMs < Math.max(forMs, minLongRunMs);
}
