// The text of a progress line: amount, share, rate, and the remaining time at that rate. Pure functions.
import { sizeText } from '../../core/size-text.js';
import type { Amount } from '../../core/work-report.js';

/** Least time for a meaningful rate. */
const minMeasuredMs = 500;

/** Measures one step. @returns a function that returns the text for the amount so far */
export function createProgressLine(): (amount: Amount, nowMs: number) => string {
  let start: { readonly done: number; readonly atMs: number } | undefined;
  let lastDone = 0;
  return (amount, nowMs) => {
    const { done } = amount;
    // The bytes before a resumed download do not count for the rate, and a step that begins again is measured again.
    if (start === undefined || done < lastDone) start = { done, atMs: nowMs };
    lastDone = done;
    const measuredMs = nowMs - start.atMs;
    const perMs = measuredMs < minMeasuredMs ? 0 : (done - start.done) / measuredMs;
    return progressText(amount, perMs);
  };
}

function progressText({ done, total, unit }: Amount, perMs: number): string {
  const share = total === 0 ? 100 : Math.min(100, Math.floor((done / total) * 100));
  const so =
    unit === 'bytes' ? `${sizeText(done)} of ${sizeText(total)}` : `${Math.floor(done)} of ${total} files`;
  if (perMs <= 0) return `${so}, ${share} %`;
  const perSecond = perMs * 1000;
  const rate = unit === 'bytes' ? sizeText(Math.round(perSecond)) : `${Math.ceil(perSecond)} files`;
  return `${so}, ${share} %, ${rate}/s, ${clockText((total - done) / perMs)} left`;
}

/** @returns `0:07`, `12:40` or `1:02:03` */
function clockText(durationMs: number): string {
  const seconds = Math.max(0, Math.ceil(durationMs / 1000));
  const two = (value: number): string => String(value).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  const whole = minutes < 60 ? String(minutes) : `${Math.floor(minutes / 60)}:${two(minutes % 60)}`;
  return `${whole}:${two(seconds % 60)}`;
}
