// Inspects other processes of the host by /proc: their identity, start time, relatives and pid files. Liveness is never checked
// with kill(pid, 0), which also succeeds for a zombie, and a zombie never reads its policy.
import * as fs from 'node:fs';
import { isSystemError, unlessRefused } from '../../core/errors.js';
import { listPids, readProcText, statFields } from './proc-files.js';

export interface ProcessInfo {
  readonly pid: number;
  /** Start time in clock ticks after the boot. A pid may be reused; pid and start time together identify a process. */
  readonly startTicks: number;
  readonly effectiveUid: number;
  /** `yes`: stopped by a signal or a debugger; it does not respond until it continues. */
  readonly stopped: 'yes' | 'no';
}

/** The pid in a pid file, and the identity of the file. */
export interface PidFile {
  readonly pid: number;
  /** Owner of the file. */
  readonly uid: number;
  readonly device: number;
  readonly inode: number;
  /** Epoch milliseconds of its last change, by the clock at that time. */
  readonly writtenAtMs: number;
}

const maxPidFileBytes = 64;
const deadStates = new Set(['Z', 'X', 'x']);
const stoppedStates = new Set(['T', 't']);

/** @returns the living process with this pid; undefined if there is none (a zombie is not alive) */
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

/** @returns the children of a process that are alive, without zombies */
export function childrenOf(pid: number): readonly ProcessInfo[] {
  return listPids('/proc')
    .filter((child) => parentOf(child) === pid)
    .slice(0, maxChildren)
    .flatMap((child) => findProcess(child) ?? []);
}

/** @returns the pid of the parent; undefined for a process that has ended */
export function parentOf(pid: number): number | undefined {
  const stat = readProcText(`/proc/${pid}/stat`, maxProcBytes);
  return stat === undefined ? undefined : Number(statFields(stat)[1]);
}

const maxAncestors = 64;

/** @returns the ancestors of a process, the nearest first; empty for a process that has ended */
export function ancestorsOf(pid: number): readonly number[] {
  const ancestors: number[] = [];
  let parent = parentOf(pid);
  while (parent !== undefined && parent > 0 && ancestors.length < maxAncestors) {
    ancestors.push(parent);
    parent = parentOf(parent);
  }
  return ancestors;
}

/** @returns true if the title of a process shows that it accepts no new connections, as that of old nginx workers */
export function isDraining(pid: number): boolean {
  return readProcText(`/proc/${pid}/cmdline`, maxProcBytes)?.includes('is shutting down') === true;
}

/**
 * Reads a pid file: a regular file with one number above 1 and no other text. A FIFO would block the reader. A link could make
 * this host signal the process of another pid file.
 * @returns undefined if the file does not contain a pid
 * @throws errors of the system
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

/** @returns a text with the reason why `readPidFile` returned undefined */
export function whyNoPid(path: string): string {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink()) return `${path} is a link, which is not followed: name the file itself`;
  return stat?.isFile() === false ? `${path} is not a file` : `${path} does not contain a pid`;
}

/** @returns undefined if the signal was sent, otherwise the errno, such as ESRCH */
export function sendSignal(pid: number, signal: NodeJS.Signals): string | undefined {
  try {
    process.kill(pid, signal);
    return undefined;
  } catch (error) {
    if (isSystemError(error)) return error.code;
    throw error;
  }
}
