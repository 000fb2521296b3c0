// Whether a client still takes its answer: how long nothing moved, and how little did. Counts the time it was given and reads no
// clock, so that a machine that slept, or was busy, is not held against anybody. Pure.

export interface PaceLimits {
  /** Nothing at all moves for so long. */
  readonly idleTimeoutMs: number;
  /** Over so long an answer has to move by minBytesPerWindow. */
  readonly slowWindowMs: number;
  readonly minBytesPerWindow: number;
}

export interface Pace {
  /** As it was counted at the last look. */
  readonly movedBytes: number;
  readonly quietMs: number;
  readonly windowMs: number;
  readonly windowBytes: number;
}

export type PaceVerdict = { readonly kind: 'goes-on'; readonly pace: Pace } | { readonly kind: 'too-slow' };

export function beginPace(movedBytes: number): Pace {
  return { movedBytes, quietMs: 0, windowMs: 0, windowBytes: 0 };
}

/**
 * @param movedBytes of the connection since its beginning
 * @param elapsedMs since the last look
 */
export function judgePace(
  pace: Pace,
  movedBytes: number,
  elapsedMs: number,
  limits: PaceLimits,
): PaceVerdict {
  const quietMs = movedBytes === pace.movedBytes ? pace.quietMs + elapsedMs : 0;
  const windowMs = pace.windowMs + elapsedMs;
  const windowBytes = pace.windowBytes + Math.max(0, movedBytes - pace.movedBytes);
  if (quietMs >= limits.idleTimeoutMs) return { kind: 'too-slow' };
  if (windowMs < limits.slowWindowMs)
    return { kind: 'goes-on', pace: { movedBytes, quietMs, windowMs, windowBytes } };
  // Who takes one byte before each end of the idle time would have its place, and its file, for ever.
  if (windowBytes < limits.minBytesPerWindow) return { kind: 'too-slow' };
  return { kind: 'goes-on', pace: { ...beginPace(movedBytes), quietMs } };
}
