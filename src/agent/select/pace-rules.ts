// When a worker group may be moved to a newer generation: not before its changes have settled, and not more often than
// it bears. Pure: times in, a time out. What waits meanwhile is merged, for the newest release is taken in the end.

export interface PaceRule {
  /** Quiet time after the last change. */
  readonly settleMs?: number;
  /** Least time between two moves. */
  readonly minIntervalMs?: number;
}

export interface PaceTimes {
  /** When the first change that waits was seen. */
  readonly sinceMs: number;
  /** When the last one was. */
  readonly changedAtMs: number;
  /** When the group was last moved; left out when it never was, or nobody knows. */
  readonly movedAtMs?: number;
  readonly nowMs: number;
}

/** Changes that never end must not keep a group back for ever: it waits so many times its quiet time at most. */
const maxSettles = 4;

/**
 * @returns epoch milliseconds until which the group waits; undefined when it need not. A time of the future was noted by
 *   a clock that was set back since, and nothing waits for it
 */
export function waitsUntilMs(rule: PaceRule, times: PaceTimes): number | undefined {
  const { settleMs = 0, minIntervalMs = 0 } = rule;
  const { sinceMs, changedAtMs, movedAtMs, nowMs } = times;
  const settled = changedAtMs > nowMs ? 0 : Math.min(changedAtMs + settleMs, sinceMs + maxSettles * settleMs);
  const rested = movedAtMs === undefined || movedAtMs > nowMs ? 0 : movedAtMs + minIntervalMs;
  const untilMs = Math.max(settled, rested);
  return untilMs > nowMs ? untilMs : undefined;
}
