// Reads /proc: process ids, links and small texts. A process may end or deny access between two calls, which is a result and
// never an error here.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { readSmallFile } from '../read-file.js';

/** @returns the ids of all visible processes */
export function listPids(proc: string): number[] {
  const names = fs.readdirSync(proc);
  return names.filter((name) => /^[1-9][0-9]*$/.test(name)).map(Number);
}

/**
 * @returns the target of the link as `text`, or as `why` that it does not exist (any more) or that this user may not
 * read it
 * @throws an error that is none of the system
 */
export function readProcLink(path: string): { readonly text?: string; readonly why?: 'gone' | 'denied' } {
  try {
    return { text: fs.readlinkSync(path) };
  } catch (error) {
    return { why: whyNot(error) };
  }
}

/** @returns the names in a directory of a process, or the reason why there are none */
export function listProcNames(path: string): { readonly names: string[]; readonly why?: 'gone' | 'denied' } {
  try {
    return { names: fs.readdirSync(path) };
  } catch (error) {
    return { names: [], why: whyNot(error) };
  }
}

/** @returns undefined for a file that is missing, denied or too long */
export function readProcText(path: string, maxBytes: number): string | undefined {
  const read = readSmallFile(path, { maxBytes });
  return read.kind === 'read' ? read.bytes.toString('utf8') : undefined;
}

/**
 * @param stat text of /proc/PID/stat of a process or a thread
 * @returns its fields from the third one (the state); the name before it may contain spaces and parentheses
 */
export function statFields(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** @returns the usual name of the program of a process; undefined if it is unreadable */
export function readCommand(proc: string, pid: number): string | undefined {
  // Since version 24 Node names its main thread `node-MainThread`, and the kernel names the process after that thread.
  return readProcText(join(proc, String(pid), 'comm'), 1000)
    ?.trimEnd()
    .replace(/-MainThread$/, '');
}

function whyNot(error: unknown): 'gone' | 'denied' {
  if (!isSystemError(error)) throw error;
  return error.code === 'EACCES' || error.code === 'EPERM' ? 'denied' : 'gone';
}
