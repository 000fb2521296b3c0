// Bounds that the kernel holds this process to. A command may be given less, never more: raising a hard limit
// needs a right that it must not have.
import * as fs from 'node:fs';

/** Infinity where there is none. */
export interface ProcessLimits {
  readonly maxDataBytes: number;
  readonly maxProcesses: number;
}

/** @param file in the form of /proc/self/limits. @returns the hard limits */
export function readProcessLimits(file = '/proc/self/limits'): ProcessLimits {
  const text = fs.readFileSync(file, 'utf8');
  const hard = (name: string): number => {
    const value = new RegExp(`^${name} +\\S+ +(\\d+) `, 'm').exec(text)?.[1];
    return value === undefined ? Number.POSITIVE_INFINITY : Number(value);
  };
  return { maxDataBytes: hard('Max data size'), maxProcesses: hard('Max processes') };
}
