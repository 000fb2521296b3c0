// A time as text, where others say the time: what no calendar has is no time, and throws nothing. Pure.

/** The last millisecond that a Date can have. */
export const latestTimeMs = 8_640_000_000_000_000;

/** @returns undefined for what no calendar has: a host may send any number */
export function isoTime(atMs: number): string | undefined {
  const time = new Date(atMs);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
