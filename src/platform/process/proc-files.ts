// How /proc is read: names of processes, links and small texts of each. Any of them may end, or forbid the look,
// between two calls: that is an answer here, never an error.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { readSmallFile } from '../read-file.js';

/** @returns the ids of all processes that this one may know of */
export function listPids(proc: string): number[] {
  const names = fs.readdirSync(proc);
  return names.filter((name) => /^[1-9][0-9]*$/.test(name)).map(Number);
}

export function readProcLink(path: string): { readonly text?: string; readonly why?: 'gone' | 'denied' } {
  try {
    return { text: fs.readlinkSync(path) };
  } catch (error) {
    return { why: whyNot(error) };
  }
}

/** @returns names in a directory of a process, or why there are none */
export function listProcNames(path: string): { readonly names: string[]; readonly why?: 'gone' | 'denied' } {
  try {
    return { names: fs.readdirSync(path) };
  } catch (error) {
    return { names: [], why: whyNot(error) };
  }
}

/** @returns undefined for what is gone, denied or too long */
export function readProcText(path: string, maxBytes: number): string | undefined {
  const read = readSmallFile(path, { maxBytes });
  return read.kind === 'read' ? read.bytes.toString('utf8') : undefined;
}

/**
 * @param stat of a process or a thread
 * @returns its fields from the third, its state, on: the name before it may hold spaces and parentheses
 */
export function statFields(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** @returns the name by which people know the program of a process; undefined when it may not be read */
export function readCommand(proc: string, pid: number): string | undefined {
  // Node calls its main thread `node-MainThread` since version 24, and the kernel names the process by that thread.
  return readProcText(join(proc, String(pid), 'comm'), 1000)
    ?.trimEnd()
    .replace(/-MainThread$/, '');
}

function whyNot(error: unknown): 'gone' | 'denied' {
  if (!isSystemError(error)) throw error;
  return error.code === 'EACCES' || error.code === 'EPERM' ? 'denied' : 'gone';
}
