// Finds the process that holds a lock. The kernel lists the holders (fdinfo in /proc); the note in the lock file only adds the
// work of its writer. A note that is stale, incomplete or of a dead process is ignored. The search is bounded, yields to the
// event loop, and runs only for a caller that did not get the lock.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { given } from '../../core/given.js';
import { listPids, listProcNames, readCommand, readProcLink, readProcText } from '../process/proc-files.js';
import { findProcess } from '../process/processes.js';
import { yieldToEventLoop } from '../time/clock.js';

/** The note that a holder writes into the lock file, for people and for the next process that wants the lock. */
export interface LockNote {
  /** As `agent` or `pull`. */
  readonly what: string;
  readonly pid: number;
  /** Clock ticks after boot: with them a reused pid is recognized. */
  readonly startTicks: number;
  /** Epoch milliseconds. */
  readonly sinceMs: number;
}

/** A running process. */
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
  /** `yes`: the holder is a running process; `unknown`: no holder is visible in this namespace. */
  readonly alive: 'yes' | 'unknown';
}

export const maxNoteBytes = 200;

/** @returns one line; its line end shows that the note is complete */
export function encodeLockNote({ what, pid, startTicks, sinceMs }: LockNote): string {
  return `${what} (pid ${pid}, started ${startTicks}) since ${new Date(sinceMs).toISOString()}\n`;
}

/** @returns undefined for text that is not a complete note */
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
  /** The visible processes that hold the lock according to the kernel. */
  readonly holders: readonly LockProcess[];
  /** The running process that the note names; undefined if it ended. */
  readonly noted?: LockProcess;
}

/**
 * Chooses the holder to report. A holder without a note of its own, as a child that inherited the lock of a dead process, is
 * named by its command.
 */
export function judgeLockHolder({ note, holders, noted }: LockFacts): LockHolder {
  const seen = holders.length > 0 ? holders : [noted].filter((one) => one !== undefined);
  // Compare start ticks and not pids: a pid differs between PID namespaces, ticks since the boot do not.
  const writer = seen.find((one) => one.startTicks === note?.startTicks);
  if (note !== undefined && writer !== undefined) {
    const { what, sinceMs } = note;
    return { text: `${what} (pid ${writer.pid})`, what, sinceMs, ...holderFields(writer) };
  }
  const [first] = seen;
  if (first === undefined) return { text: 'a process that cannot be seen from here', alive: 'unknown' };
  return { text: `${first.command ?? 'a process'} (pid ${first.pid})`, ...holderFields(first) };
}

function holderFields({ pid, command }: LockProcess): Pick<LockHolder, 'pid' | 'command' | 'alive'> {
  return { pid, ...given({ command }), alive: 'yes' };
}

/**
 * @param fdinfo text of /proc/PID/fdinfo/N (proc(5))
 * @returns whether that descriptor holds a flock on the file with this inode number
 */
export function holdsFlock(fdinfo: string, inode: bigint): boolean {
  const locks = fdinfo.split('\n').filter((line) => /^lock:.*\bFLOCK\b/.test(line));
  return locks.some((line) => line.split(/\s+/).some((field) => field.endsWith(`:${inode}`)));
}

const maxLinks = 200_000;
const pidsPerPause = 64;

/** @returns the current holder, as far as this process can see it */
export async function findLockHolder(path: string, proc = '/proc'): Promise<LockHolder> {
  const note = parseLockNote(readProcText(path, maxNoteBytes) ?? '');
  const noted = note && livingWriter(note);
  const file = { name: basename(path), inode: fs.statSync(path, { bigint: true }).ino, proc };
  if (noted !== undefined && inspectProcess(noted.pid, file).holds) {
    return judgeLockHolder({ note, holders: [noted] });
  }
  const holders = await findHolders(file);
  return judgeLockHolder({ note, holders, ...given({ noted }) });
}

type LockFile = { readonly name: string; readonly inode: bigint; readonly proc: string };

function livingWriter({ pid, startTicks }: LockNote): LockProcess | undefined {
  const found = readLockProcess(pid);
  return found?.startTicks === startTicks ? found : undefined;
}

function readLockProcess(pid: number, proc = '/proc'): LockProcess | undefined {
  const found = findProcess(pid);
  if (found === undefined) return undefined;
  return { pid, startTicks: found.startTicks, ...given({ command: readCommand(proc, pid) }) };
}

async function findHolders(file: LockFile): Promise<LockProcess[]> {
  const found: LockProcess[] = [];
  let left = maxLinks;
  for (const [index, pid] of listPids(file.proc).entries()) {
    if (index % pidsPerPause === 0) await yieldToEventLoop();
    const { holds, links } = inspectProcess(pid, file);
    const process = holds ? readLockProcess(pid, file.proc) : undefined;
    if (process !== undefined) found.push(process);
    left -= links;
    if (left <= 0) break;
  }
  return found;
}

function inspectProcess(pid: number, { name, inode, proc }: LockFile): { holds: boolean; links: number } {
  const directory = join(proc, String(pid));
  const { names } = listProcNames(join(directory, 'fd'));
  const holds = names.some((descriptor) => {
    // Compare only the file name and then the inode: in another mount namespace the path differs, the inode does not.
    if (readProcLink(join(directory, 'fd', descriptor)).text?.endsWith(`/${name}`) !== true) return false;
    return holdsFlock(readProcText(join(directory, 'fdinfo', descriptor), 10_000) ?? '', inode);
  });
  return { holds, links: names.length };
}
