// The door to other processes of the host: who has this pid, and since when. Reads /proc only.
// "Alive" is never asked with kill(pid, 0): that says yes for a zombie, which will never read its policy.
import * as fs from 'node:fs';
import { isSystemError, unlessRefused } from '../../core/errors.js';
import { listPids, readProcText, statFields } from './proc-files.js';

export interface ProcessInfo {
  readonly pid: number;
  /** Clock ticks after boot: pid and start time together name one process, a pid alone may be used again. */
  readonly startTicks: number;
  readonly effectiveUid: number;
  /** `yes`: stopped by a signal or a debugger; it answers nobody until it goes on. */
  readonly stopped: 'yes' | 'no';
}

/** What a pid file says, and which file it is. */
export interface PidFile {
  readonly pid: number;
  /** Owner of the file. */
  readonly uid: number;
  readonly device: number;
  readonly inode: number;
  /** Epoch milliseconds, by the clock of then. */
  readonly writtenAtMs: number;
}

const maxPidFileBytes = 64;
const deadStates = new Set(['Z', 'X', 'x']);
const stoppedStates = new Set(['T', 't']);

/** @returns the process that has this pid and is alive, or undefined (a zombie is not alive) */
export function findProcess(pid: number): ProcessInfo | undefined {
  const read = (name: string): string => fs.readFileSync(`/proc/${pid}/${name}`, 'latin1');
  const texts = unlessRefused(() => [read('stat'), read('status')], ['ENOENT', 'ESRCH']);
  const [stat = '', status = ''] = texts ?? [];
  const fields = statFields(stat);
  const startTicks = Number(fields[19]);
  const effectiveUid = Number(/^Uid:\t\d+\t(\d+)/m.exec(status)?.[1]);
  const [state = ''] = fields;
  if (deadStates.has(state) || Number.isNaN(startTicks) || Number.isNaN(effectiveUid)) return undefined;
  return { pid, startTicks, effectiveUid, stopped: stoppedStates.has(state) ? 'yes' : 'no' };
}

const maxChildren = 4096;
const maxProcBytes = 65_536;

/** @returns the live processes whose parent this is; a zombie is none */
export function childrenOf(pid: number): readonly ProcessInfo[] {
  return listPids('/proc')
    .filter((child) => parentOf(child) === pid)
    .slice(0, maxChildren)
    .flatMap((child) => findProcess(child) ?? []);
}

/** @returns undefined for a process that is gone */
export function parentOf(pid: number): number | undefined {
  const stat = readProcText(`/proc/${pid}/stat`, maxProcBytes);
  return stat === undefined ? undefined : Number(statFields(stat)[1]);
}

const maxAncestors = 64;

/** @returns the parents of a process, the nearest first; none for a process that is gone */
export function ancestorsOf(pid: number): readonly number[] {
  const ancestors: number[] = [];
  let parent = parentOf(pid);
  while (parent !== undefined && parent > 0 && ancestors.length < maxAncestors) {
    ancestors.push(parent);
    parent = parentOf(parent);
  }
  return ancestors;
}

/** @returns whether a process says in its title, as nginx's old workers do, that it takes no new connections */
export function isDraining(pid: number): boolean {
  return readProcText(`/proc/${pid}/cmdline`, maxProcBytes)?.includes('is shutting down') === true;
}

/**
 * Reads a pid file: one number above 1, nothing else, in a regular file (a FIFO would hang the reader; a link would
 * aim a signal at whom the pid file of somebody else means).
 * @returns undefined when the file does not hold a pid
 * @throws the system's error when it cannot be read
 */
export function readPidFile(path: string): PidFile | undefined {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = fs.constants;
  const descriptor = unlessRefused(() => fs.openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW), ['ELOOP']);
  if (descriptor === undefined) return undefined;
  try {
    const stat = fs.fstatSync(descriptor);
    if (!stat.isFile()) return undefined;
    const buffer = Buffer.alloc(maxPidFileBytes + 1);
    const length = fs.readSync(descriptor, buffer, 0, buffer.length, 0);
    if (length > maxPidFileBytes) return undefined;
    const match = /^\s*([1-9][0-9]{0,9})\s*$/.exec(buffer.toString('latin1', 0, length));
    const pid = Number(match?.[1] ?? 0);
    if (pid <= 1) return undefined;
    return { pid, uid: stat.uid, device: stat.dev, inode: stat.ino, writtenAtMs: stat.mtimeMs };
  } finally {
    fs.closeSync(descriptor);
  }
}

/** @returns why `readPidFile` has no pid, for a message */
export function whyNoPid(path: string): string {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink()) return `${path} is a link, which is not followed: name the file itself`;
  return stat?.isFile() === false ? `${path} is not a file` : `${path} does not contain a pid`;
}

/** @returns undefined when the signal was sent, else the errno name, as ESRCH */
export function sendSignal(pid: number, signal: NodeJS.Signals): string | undefined {
  try {
    process.kill(pid, signal);
    return undefined;
  } catch (error) {
    if (isSystemError(error)) return error.code;
    throw error;
  }
}
