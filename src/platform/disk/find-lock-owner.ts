// Who holds a lock, in words that can be relied on: the kernel says which processes hold it (fdinfo in /proc), the text in
// the lock file only what its writer was doing; one that is stale, torn or of a dead process names nobody. Bounded, lets
// others run, and only ever used by somebody who did not get the lock.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { given } from '../../core/given.js';
import { listPids, listProcNames, readCommand, readProcLink, readProcText } from '../process/proc-files.js';
import { findProcess } from '../process/processes.js';
import { letOthersRun } from '../time/clock.js';

/** What a holder writes into the lock file, for people and for the next one. */
export interface LockNote {
  /** As `agent` or `pull`. */
  readonly what: string;
  readonly pid: number;
  /** Clock ticks after boot: with it the pid names one process, and a pid that was used again nobody. */
  readonly startTicks: number;
  /** Epoch milliseconds. */
  readonly sinceMs: number;
}

/** A process that is alive. */
export interface LockProcess {
  readonly pid: number;
  readonly startTicks: number;
  readonly command?: string;
}

export interface LockHolder {
  /** For people, as `agent (pid 4711)`. */
  readonly text: string;
  readonly what?: string;
  readonly pid?: number;
  readonly command?: string;
  readonly sinceMs?: number;
  /** `yes`: a living process was seen; `unknown`: it is not visible from here. */
  readonly alive: 'yes' | 'unknown';
}

export const maxNoteBytes = 200;

/** @returns one line; its end proves that it was written whole */
export function encodeLockNote({ what, pid, startTicks, sinceMs }: LockNote): string {
  return `${what} (pid ${pid}, started ${startTicks}) since ${new Date(sinceMs).toISOString()}\n`;
}

/** @returns undefined for what is no whole note */
export function parseLockNote(text: string): LockNote | undefined {
  const pattern =
    /^([a-z][a-z0-9 -]{0,60}) \(pid ([0-9]{1,10}), started ([0-9]{1,15})\) since (\S{20,30}Z)\n$/;
  const [, what, pid, startTicks, since = ''] = pattern.exec(text) ?? [];
  const sinceMs = Date.parse(since);
  if (what === undefined || Number.isNaN(sinceMs)) return undefined;
  return { what, pid: Number(pid), startTicks: Number(startTicks), sinceMs };
}

interface LockFacts {
  readonly note: LockNote | undefined;
  /** Processes that the kernel says hold the lock, as far as they can be seen. */
  readonly holders: readonly LockProcess[];
  /** The living process that the note names, if there is one. */
  readonly noted?: LockProcess;
}

/**
 * @returns who holds a lock that could not be taken; a holder that left no note, as a child that inherited the lock
 *   of a dead one, is named by its own command
 */
export function judgeLockHolder({ note, holders, noted }: LockFacts): LockHolder {
  const seen = holders.length > 0 ? holders : [noted].filter((one) => one !== undefined);
  // Not by the pid: another PID namespace counts otherwise, and ticks since the boot are the same everywhere.
  const writer = seen.find((one) => one.startTicks === note?.startTicks);
  if (note !== undefined && writer !== undefined) {
    const { what, sinceMs } = note;
    return { text: `${what} (pid ${writer.pid})`, what, sinceMs, ...ofProcess(writer) };
  }
  const [first] = seen;
  if (first === undefined) return { text: 'a process that cannot be seen from here', alive: 'unknown' };
  return { text: `${first.command ?? 'a process'} (pid ${first.pid})`, ...ofProcess(first) };
}

function ofProcess({ pid, command }: LockProcess): Pick<LockHolder, 'pid' | 'command' | 'alive'> {
  return { pid, ...given({ command }), alive: 'yes' };
}

/**
 * @param fdinfo text of /proc/PID/fdinfo/N (proc(5))
 * @returns whether that descriptor holds a flock on the file with this inode number
 */
export function holdsFlock(fdinfo: string, inode: bigint): boolean {
  const locks = fdinfo.split('\n').filter((line) => /^lock:.*\bFLOCK\b/.test(line));
  return locks.some((line) => line.split(/\s+/).some((word) => word.endsWith(`:${inode}`)));
}

const maxLinks = 200_000;
const pidsPerPause = 64;

/** @returns who holds the lock just now, as far as it can be seen */
export async function findLockHolder(path: string, proc = '/proc'): Promise<LockHolder> {
  const note = parseLockNote(readProcText(path, maxNoteBytes) ?? '');
  const noted = note && livingWriter(note);
  const file = { name: basename(path), inode: fs.statSync(path, { bigint: true }).ino, proc };
  if (noted !== undefined && hasLock(noted.pid, file).holds) {
    return judgeLockHolder({ note, holders: [noted] });
  }
  const holders = await searchAll(file);
  return judgeLockHolder({ note, holders, ...given({ noted }) });
}

type LockFile = { readonly name: string; readonly inode: bigint; readonly proc: string };

function livingWriter({ pid, startTicks }: LockNote): LockProcess | undefined {
  const found = seenProcess(pid);
  return found?.startTicks === startTicks ? found : undefined;
}

function seenProcess(pid: number, proc = '/proc'): LockProcess | undefined {
  const found = findProcess(pid);
  if (found === undefined) return undefined;
  return { pid, startTicks: found.startTicks, ...given({ command: readCommand(proc, pid) }) };
}

async function searchAll(file: LockFile): Promise<LockProcess[]> {
  const found: LockProcess[] = [];
  let left = maxLinks;
  for (const [index, pid] of listPids(file.proc).entries()) {
    if (index % pidsPerPause === 0) await letOthersRun();
    const { holds, links } = hasLock(pid, file);
    const process = holds ? seenProcess(pid, file.proc) : undefined;
    if (process !== undefined) found.push(process);
    left -= links;
    if (left <= 0) break;
  }
  return found;
}

function hasLock(pid: number, { name, inode, proc }: LockFile): { holds: boolean; links: number } {
  const directory = join(proc, String(pid));
  const { names } = listProcNames(join(directory, 'fd'));
  const holds = names.some((descriptor) => {
    // By the name alone: in another mount namespace the path is another one, the inode is not.
    if (readProcLink(join(directory, 'fd', descriptor)).text?.endsWith(`/${name}`) !== true) return false;
    return holdsFlock(readProcText(join(directory, 'fdinfo', descriptor), 10_000) ?? '', inode);
  });
  return { holds, links: names.length };
}
