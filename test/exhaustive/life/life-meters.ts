// What a life is measured by at the end of each virtual hour, when all is right and still, and whether that stayed flat: the
// medians of the last three quarters, since in the first things still get their sizes. Pure but for read.
import { readdirSync } from 'node:fs';
import { getHeapCodeStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Measured {
  readonly descriptors: number;
  /** Timers of Node. */
  readonly timers: number;
  /** Who sleeps by the virtual clock. */
  readonly sleepers: number;
  /** Listeners of the process and of the signal that ends the agent. */
  readonly listeners: number;
  /** Heap behind a full collection without V8's code, and buffers outside of it. */
  readonly bytes: number;
  /** Files and directories of the state. */
  readonly entries: number;
}

/**
 * By how much the median may grow from the second quarter to the last. A leak of a descriptor or of 1 kB at each poll of a minute is, over the 24 hours
 * between the middles of both quarters, 1440 and 1.4 MB; a life without one grew by 0.2 MB.
 */
export const tolerances: Measured = {
  ...{ descriptors: 1, timers: 2, sleepers: 4, listeners: 4 },
  bytes: 1_000_000,
  entries: 60,
};

/**
 * From here on V8 optimises nothing: two days of a life in minutes make it compile until the end, and what it makes and
 * notes for that was most of what grew (0.8 of 1.4 MB in ten hours), which no agent can help.
 * @returns a full collection, whatever flags this process was started with
 */
export function collector(): () => void {
  setFlagsFromString('--no-opt');
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

export function descriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

export function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
}

/** What is left of the harness in it: metrics of agents that have ended, which last as long as a process (10 kB each start). */
export function bytes(collect: () => void): number {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  const { code_and_metadata_size: code, bytecode_and_metadata_size: bytecode } = getHeapCodeStatistics();
  return heapUsed + external - code - bytecode;
}

export interface Growth {
  readonly meter: keyof Measured;
  /** Medians of the second, the third and the last quarter. */
  readonly quarters: readonly [number, number, number];
}

export function growth(series: readonly Measured[]): Growth[] {
  const quarter = Math.floor(series.length / 4);
  const from = series.length - 3 * quarter;
  const medianOf = (meter: keyof Measured, nth: number): number =>
    median(series.slice(from + nth * quarter, from + (nth + 1) * quarter).map((one) => one[meter]));
  return (Object.keys(tolerances) as (keyof Measured)[]).map((meter) => ({
    meter,
    quarters: [medianOf(meter, 0), medianOf(meter, 1), medianOf(meter, 2)],
  }));
}

/**
 * A leak goes on, so half of what may grow is exceeded from each quarter to the next. One step is none, whenever it comes:
 * the first wrong configuration of a process takes 1.6 MB for good, the next thousand take nothing.
 * @returns what goes on growing
 */
export function leaks(series: readonly Measured[]): Growth[] {
  return growth(series).filter(({ meter, quarters: [second, third, last] }) => {
    const steady = 2 * Math.min(third - second, last - third);
    return steady > tolerances[meter];
  });
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
