// Formats numbers, times and names for every page: UTC, thousands with commas, ages in one or two units. Pure; independent of
// queries and HTML.
import { grouped } from '../../core/text/grouped.js';
import { isoTime, timeLeft } from '../../core/text/iso-time.js';

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

/** @returns `1 host`, `2,000 hosts` */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** @returns an age in its two greatest units, as `4 min 20 s`; in days alone from one day on */
export function ageText(durationMs: number): string {
  const rest = Math.max(0, durationMs);
  const first = units.findIndex(([, ms]) => rest >= ms);
  const [unit, ms] = units[first] ?? ['s', 1000];
  const whole = `${grouped(Math.floor(rest / ms))} ${unit}`;
  const next = units[first + 1];
  const more = next === undefined ? 0 : Math.floor((rest % ms) / next[1]);
  return next === undefined || more === 0 || unit === 'd' ? whole : `${whole} ${more} ${next[0]}`;
}

/** @returns `2026-11-21 14:32:05 UTC`; a dash for a time outside the calendar */
export function timeText(atMs: number): string {
  const iso = isoTime(atMs);
  return iso === undefined ? '-' : `${iso.slice(0, 19).replace('T', ' ')} UTC`;
}

/** @returns `6 d left`, `5 h left`, `expired 2 d ago` */
export function leftText(expiresAtMs: number, nowMs: number): string {
  if (expiresAtMs <= nowMs) return `expired ${ageText(nowMs - expiresAtMs)} ago`;
  return `${timeLeft(expiresAtMs - nowMs)} left`;
}

/** @returns `3 s ahead`, `2 min behind`; undefined below 2 s */
export function skewText(skewMs: number): string | undefined {
  if (Math.abs(skewMs) < 2000) return undefined;
  return `${ageText(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead' : 'behind'}`;
}

/** @returns `40 %`; never 100 % while a host is missing, never 0 % while there is one */
export function shareText(part: number, whole: number): string {
  if (whole <= 0) return '0 %';
  const percent = Math.round((part / whole) * 100);
  if (part < whole && percent >= 100) return '> 99 %';
  return part > 0 && percent === 0 ? '< 1 %' : `${percent} %`;
}
