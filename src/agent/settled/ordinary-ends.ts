// How often the process of a worker ends with any release: the number of ends since a swap that is no evidence against it.
// Pure; docs/adr/0075-ordinary-ends-of-processes.md has the reasons.
import type { Bake, ProcessEnd, WorkerRuns } from '../state/ledger.js';
import { maxOtherEnds } from './runs-rules.js';

/** Equal rates differ by chance from one time to the next, so only more than this multiple is a sign of a faulty release. */
const ordinaryFactor = 2;
/** Fewer may be restarts by a person, and show no rate for a longer time than the one in which they were seen. */
export const minEndsOfRate = 3;

export interface OrdinaryEndsOptions {
  /** Bake time: the longest time before the swap that is compared, because an older load shows less about the present one. */
  readonly forMs: number;
  readonly nowMs: number;
  /** Which ends are compared. */
  readonly isCounted: (end: ProcessEnd) => boolean;
}

/**
 * Ends within an earlier bake time may be the fault of that release, so the comparison is with the time before it.
 * @returns how many ends since the swap are ordinary for this worker; 0 where it had none before, or was not observed
 */
export function countOrdinaryEnds(
  runs: WorkerRuns,
  { startedAtMs }: Bake,
  { forMs, nowMs, isCounted }: OrdinaryEndsOptions,
): number {
  const { ends, watchedSinceMs } = runs.unobserved ? withoutGap(runs, runs.unobserved, startedAtMs) : runs;
  const spanMs = nowMs - startedAtMs;
  const others = ends.filter((one) => one.isAttributed !== true && one.atMs <= startedAtMs);
  const newest = others.at(-1);
  const first = others[0];
  if (newest === undefined || first === undefined) return 0;
  const bakedSinceMs = ends.slice(ends.indexOf(newest)).find((one) => one.isAttributed === true)?.atMs;
  const untilMs = Math.min(startedAtMs, bakedSinceMs ?? startedAtMs);
  // Older ends are forgotten where the list is full.
  const knownSinceMs = others.length < maxOtherEnds ? watchedSinceMs : Math.max(watchedSinceMs, first.atMs);
  const observedMs = Math.min(spanMs, forMs, untilMs - knownSinceMs);
  if (observedMs <= 0) return 0;
  const count = others.filter((one) => isCounted(one) && one.atMs >= untilMs - observedMs).length;
  const scale = count < minEndsOfRate ? 1 : spanMs / observedMs;
  return Math.ceil(ordinaryFactor * count * scale);
}

/**
 * Takes a time without an observer before the swap out of the runs: what came before it is moved to its end.
 * @returns the runs as if the worker had been observed without interruption; the same ones where that time is later than the swap
 */
function withoutGap(
  { ends, watchedSinceMs }: WorkerRuns,
  { fromMs, toMs }: NonNullable<WorkerRuns['unobserved']>,
  startedAtMs: number,
): Pick<WorkerRuns, 'ends' | 'watchedSinceMs'> {
  if (toMs > startedAtMs) return { ends, watchedSinceMs };
  const observed = ends.filter(({ atMs }) => atMs <= fromMs || atMs > toMs);
  const moveMs = (atMs: number): number => (atMs > toMs ? atMs : atMs + toMs - fromMs);
  return {
    ends: observed.map((one) => ({ ...one, atMs: moveMs(one.atMs) })),
    watchedSinceMs: moveMs(watchedSinceMs),
  };
}
