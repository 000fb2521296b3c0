// Decides whether a client reads its response fast enough: how long no byte moved, and how few moved in a window. The caller passes the
// elapsed time, so that a suspend or an overload of this machine does not count against clients. Pure.

export interface PaceLimits {
  /** Longest time without a single byte. */
  readonly idleTimeoutMs: number;
  /** Time in which a response must move by minBytesPerWindow. */
  readonly slowWindowMs: number;
  readonly minBytesPerWindow: number;
}

export interface ConnectionPace {
  /** Count of bytes at the last check. */
  readonly movedBytes: number;
  readonly quietMs: number;
  readonly windowMs: number;
  readonly windowBytes: number;
}

export type PaceVerdict =
  | { readonly kind: 'goes-on'; readonly pace: ConnectionPace }
  | { readonly kind: 'too-slow' };

/**
 * @param movedBytes the bytes that the connection had transferred when the response began
 * @returns the pace of a connection with no elapsed time
 */
export function beginPace(movedBytes: number): ConnectionPace {
  return { movedBytes, quietMs: 0, windowMs: 0, windowBytes: 0 };
}

/**
 * @param movedBytes of the connection since it was opened; `elapsedMs` is the time since the last check, `pace` the result of
 *   that check
 * @returns `too-slow` if no byte moved for `idleTimeoutMs`, or a complete window moved less than `minBytesPerWindow`. Otherwise
 *   `goes-on` with the pace for the next check; a complete window starts a new one. Pure; throws nothing.
 */
export function judgePace(
  pace: ConnectionPace,
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
  // Without this, a client that reads one byte before each idle timeout would hold its connection and file forever.
  if (windowBytes < limits.minBytesPerWindow) return { kind: 'too-slow' };
  return { kind: 'goes-on', pace: { ...beginPace(movedBytes), quietMs } };
}
