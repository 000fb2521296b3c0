// Times as text. A time may come from other programs: a number that is no date is not an error here. Also the remaining validity of
// a role, the same in each command. Pure.

/** The last millisecond that a Date can represent. */
export const latestTimeMs = 8_640_000_000_000_000;

/** @returns undefined for a number that is no date, because a host may send any number */
export function isoTime(atMs: number): string | undefined {
  const time = new Date(atMs);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/**
 * Rounds days and hours: a role that was signed for a week a minute ago has 7 days left.
 * @returns as `365 d`, `18 h` or `5 min`, never less than two of the longer unit; `expired` from zero on
 */
export function timeLeft(leftMs: number): string {
  if (leftMs <= 0) return 'expired';
  if (leftMs >= 2 * dayMs) return `${Math.round(leftMs / dayMs)} d`;
  if (leftMs >= 2 * hourMs) return `${Math.round(leftMs / hourMs)} h`;
  return `${Math.floor(leftMs / minuteMs)} min`;
}

/** @returns as `2026-11-28 17:16:19 UTC`, the form in all messages; milliseconds for a number that is no date */
export function utcTimeText(atMs: number): string {
  const time = isoTime(atMs);
  return time === undefined ? `${atMs} ms` : `${time.slice(0, 19).replace('T', ' ')} UTC`;
}
