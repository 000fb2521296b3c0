// What a life is measured by at the end of each virtual hour, when all is right and still, and whether that stayed flat: the
// median of the last quarter against that of the second, since in the first things still get their sizes. Pure but for read.
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
 * By how much the median may have grown. A leak of a descriptor or of 1 kB at each poll of a minute is, over the 24 hours
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
  readonly before: number;
  readonly after: number;
}

/** @returns each meter with its median of the second and of the last quarter */
export function growth(series: readonly Measured[]): Growth[] {
  const quarter = Math.floor(series.length / 4);
  const second = series.slice(quarter, 2 * quarter);
  const last = series.slice(series.length - quarter);
  return (Object.keys(tolerances) as (keyof Measured)[]).map((meter) => ({
    meter,
    before: median(second.map((one) => one[meter])),
    after: median(last.map((one) => one[meter])),
  }));
}

/** @returns what has grown by more than it may */
export function leaks(series: readonly Measured[]): Growth[] {
  return growth(series).filter(({ meter, before, after }) => after - before > tolerances[meter]);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
