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
  const inBakeMs = noticeInBakeAtMs(
    ends.filter((one) => isUnasked(one) && one.atMs >= (bakeStartedAtMs ?? Number.POSITIVE_INFINITY)),
    forMs,
  );
  const firstOfRow = 1 + ends.findLastIndex((one) => !isUnasked(one) || one.livedMs >= forMs);
  const row = ends.slice(firstOfRow);
  const last = row.at(-1);
  if (last === undefined || row.length <= promptNotices) return inBakeMs;
  const gapMs = computeBackoffMs(row.length - promptNotices, backoff);
  return Math.max(inBakeMs, last.atMs + gapMs);
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
