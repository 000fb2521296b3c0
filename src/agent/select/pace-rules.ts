// Judges when a worker group may get a newer generation: after the quiet time, and with the least time between two moves. Pure.
// Releases that wait are merged, because the newest one is taken in the end.

export interface PaceRule {
  /** Quiet time after the last change. */
  readonly settleMs?: number;
  /** Least time between two moves. */
  readonly minIntervalMs?: number;
}

export interface PaceTimes {
  /** Epoch milliseconds of the first change that waits. */
  readonly sinceMs: number;
  /** Epoch milliseconds of the last one. */
  readonly changedAtMs: number;
  /** Epoch milliseconds of the last move of the group; left out where none is known. */
  readonly movedAtMs?: number;
  readonly nowMs: number;
}

/** A group waits for this multiple of its quiet time at most, because the changes may never end. */
const maxSettles = 4;

/**
 * @returns epoch milliseconds until which the group waits: the later of the quiet time after the last change (at most 4 quiet
 *   times after the first), and the least interval after the last move; undefined if this is not after nowMs. A time in the
 *   future delays nothing, because the clock was set back since
 */
export function waitsUntilMs(rule: PaceRule, times: PaceTimes): number | undefined {
  const { settleMs = 0, minIntervalMs = 0 } = rule;
  const { sinceMs, changedAtMs, movedAtMs, nowMs } = times;
  const settled = changedAtMs > nowMs ? 0 : Math.min(changedAtMs + settleMs, sinceMs + maxSettles * settleMs);
  const rested = movedAtMs === undefined || movedAtMs > nowMs ? 0 : movedAtMs + minIntervalMs;
  const untilMs = Math.max(settled, rested);
  return untilMs > nowMs ? untilMs : undefined;
}
