// The intervals at which an agent checks its workers: the usual ones, or short ones for CI. Pure.

export interface Intervals {
  readonly roundEveryMs: number;
  readonly livenessEveryMs: number;
  readonly maxReadGapMs: number;
  readonly probeEveryMs: number;
}

/** `real`: the usual intervals, with the page's `probe.every`. */
export type Pace = 'quick' | 'real';

/** Below the minimum of 30 s in a configuration. */
export const quickIntervals: Intervals = {
  roundEveryMs: 1000,
  livenessEveryMs: 1000,
  maxReadGapMs: 1000,
  probeEveryMs: 1000,
};

/** @returns the deadline of a probe without one on its page: a broken release takes this long in each cell */
export function probeDeadline(pace: Pace): string {
  return pace === 'real' ? '60s' : '12s';
}

/** @returns the interval of a repeated probe; 0 without one */
export function probeEveryMs(everyMs: number, pace: Pace): number {
  return pace === 'real' ? everyMs : Math.min(everyMs, quickIntervals.probeEveryMs);
}
