// How often an agent of a cell looks after its daemon: as everywhere, or as quickly as CI has time for. Pure.

export interface Intervals {
  readonly roundEveryMs: number;
  readonly livenessEveryMs: number;
  readonly maxReadGapMs: number;
  readonly probeEveryMs: number;
}

/** `real`: nothing is injected, and the page's `probe.every` holds. */
export type Pace = 'quick' | 'real';

/** Below the 30 s that a configuration may set. */
export const quickIntervals: Intervals = {
  roundEveryMs: 1000,
  livenessEveryMs: 1000,
  maxReadGapMs: 1000,
  probeEveryMs: 1000,
};

/** @returns how long a probe is asked that its page gives no time: a broken release costs so much in each cell */
export function probeDeadline(pace: Pace): string {
  return pace === 'real' ? '60s' : '12s';
}

/** @returns the interval of a repeated probe; 0 where there is none */
export function probeEveryMs(everyMs: number, pace: Pace): number {
  return pace === 'real' ? everyMs : Math.min(everyMs, quickIntervals.probeEveryMs);
}
