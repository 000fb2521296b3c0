// Measures a simulated host at the end of each virtual hour, when no fault and no work is left, and finds growth in the
// medians of the last three quarters. The first quarter does not count, because caches and tables fill in it. Pure except for
// reads.
import { readdirSync } from 'node:fs';
import { getHeapCodeStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Measured {
  readonly descriptors: number;
  /** Timers of Node. */
  readonly timers: number;
  /** Callers that sleep by the virtual clock. */
  readonly sleepers: number;
  /** Listeners of the process and of the signal that ends the agent. */
  readonly listeners: number;
  /** Heap after a full collection without V8's code, plus buffers outside the heap. */
  readonly bytes: number;
  /** Files and directories of the state. */
  readonly entries: number;
}

/**
 * The growth of a median from the second quarter to the last that is no leak. Between the middles of both quarters are
 * 24 hours. A leak at each poll of a minute is 1440 descriptors, or 1.4 MB for 1 kB a poll; a simulation without a leak
 * grew by 0.2 MB.
 */
export const tolerances: Measured = {
  ...{ descriptors: 1, timers: 2, sleepers: 4, listeners: 4 },
  bytes: 1_000_000,
  entries: 60,
};

/**
 * Turns off the optimising compiler of V8 for the rest of the process. Two days in minutes keep it compiling until the
 * end, and its code and feedback were most of the growth (0.8 of 1.4 MB in ten hours), which the agent does not cause.
 * @returns a function for a full collection, whatever flags the process was started with
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

/**
 * Heap and buffers in bytes. Metrics of ended agents remain in it, because they last as long as the process (10 kB for
 * each start).
 */
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
    median(series.slice(from + nth * quarter, from + (nth + 1) * quarter).map((measured) => measured[meter]));
  return (Object.keys(tolerances) as (keyof Measured)[]).map((meter) => ({
    meter,
    quarters: [medianOf(meter, 0), medianOf(meter, 1), medianOf(meter, 2)],
  }));
}

/**
 * A leak is steady: each quarter grows by more than half of the tolerance. A single step is no leak, whenever it comes:
 * the first wrong configuration of a process takes 1.6 MB for good, the next thousand take nothing.
 * @returns the meters that leak
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
