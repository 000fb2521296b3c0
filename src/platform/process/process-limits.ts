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
  return { maxDataBytes: hardLimit(text, 'Max data size'), maxProcesses: hardLimit(text, 'Max processes') };
}

/** How many descriptors this process may have: Node raises the soft limit to the hard one when it starts. */
export function readMaxOpenFiles(file = '/proc/self/limits'): number {
  return hardLimit(fs.readFileSync(file, 'utf8'), 'Max open files');
}

function hardLimit(text: string, name: string): number {
  const value = new RegExp(`^${name} +\\S+ +(\\d+) `, 'm').exec(text)?.[1];
  return value === undefined ? Number.POSITIVE_INFINITY : Number(value);
}
