// Limits of this process in the kernel. A command may get lower limits, never higher ones: raising a hard limit needs a
// capability that a command must not have.
import * as fs from 'node:fs';

/** @returns Infinity without a limit */
export interface ProcessLimits {
  readonly maxDataBytes: number;
  readonly maxProcesses: number;
}

/** @param file in the form of /proc/self/limits. @returns the hard limits */
export function readProcessLimits(file = '/proc/self/limits'): ProcessLimits {
  const text = fs.readFileSync(file, 'utf8');
  return { maxDataBytes: hardLimit(text, 'Max data size'), maxProcesses: hardLimit(text, 'Max processes') };
}

/** @returns the hard limit of descriptors; Node raises the soft limit to it at its start */
export function readMaxOpenFiles(file = '/proc/self/limits'): number {
  return hardLimit(fs.readFileSync(file, 'utf8'), 'Max open files');
}

function hardLimit(text: string, name: string): number {
  const value = new RegExp(`^${name} +\\S+ +(\\d+) `, 'm').exec(text)?.[1];
  return value === undefined ? Number.POSITIVE_INFINITY : Number(value);
}
