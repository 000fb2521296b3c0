// A time as text, where others say the time: what no calendar has is no time, and throws nothing; and how long something is valid
// still, as every command says it. Pure.

/** The last millisecond that a Date can have. */
export const latestTimeMs = 8_640_000_000_000_000;

/** @returns undefined for what no calendar has: a host may send any number */
export function isoTime(atMs: number): string | undefined {
  const time = new Date(atMs);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/**
 * Days and hours are rounded: what was signed for a week a minute ago has 7 days left, and nobody looks for the eighth.
 * @returns as `365 d`, `18 h` or `5 min`, never less than two of the longer unit; `expired` from zero on
 */
export function timeLeft(leftMs: number): string {
  if (leftMs <= 0) return 'expired';
  if (leftMs >= 2 * dayMs) return `${Math.round(leftMs / dayMs)} d`;
  if (leftMs >= 2 * hourMs) return `${Math.round(leftMs / hourMs)} h`;
  return `${Math.floor(leftMs / minuteMs)} min`;
}

/** @returns as `2026-11-28 17:16:19 UTC`, the form of every message; a count of milliseconds for what no calendar has */
export function utcTimeText(atMs: number): string {
  const time = isoTime(atMs);
  return time === undefined ? `${atMs} ms` : `${time.slice(0, 19).replace('T', ' ')} UTC`;
}
