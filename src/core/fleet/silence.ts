// Who is silent: two granted intervals, during which the server was accepting, without a word, and the last word was `run`.
// One rule for a host and for a count of hosts. Pure.

/** How many granted intervals may pass. */
export const silentIntervals = 2;

export interface Heard {
  readonly agent: string;
  readonly lastSeenMs: number;
  /** As it was granted last; 0 before the first report. */
  readonly everyMs: number;
}

/** @param acceptingSinceMs since when this fleet's servers take reports without a gap */
export function presenceOf(
  { agent, lastSeenMs, everyMs }: Heard,
  acceptingSinceMs: number,
  nowMs: number,
): 'heard' | 'silent' | 'stopped' | 'never' {
  if (lastSeenMs === 0) return 'never';
  if (agent === 'stop') return 'stopped';
  // Silence of before the server accepted is the server's own.
  const fromMs = Math.max(lastSeenMs, acceptingSinceMs);
  return agent === 'run' && nowMs - fromMs > silentIntervals * everyMs ? 'silent' : 'heard';
}
