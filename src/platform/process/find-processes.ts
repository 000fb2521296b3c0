// Finds the processes that use a part of `policy/`: walks /proc for mounts of every visible mount namespace, working directories,
// root directories and open files. Bounded in entries, bytes and time; unreadable processes are counted. Compares paths by
// core/status/mount-table and never accesses the files, because a dead network file system would block this process.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { given } from '../../core/given.js';
import type { FileLocation, GenerationUser, Mount } from '../../core/status/mount-table.js';
import { findCollectableDirectory, locateFile, parseMountInfo } from '../../core/status/mount-table.js';
import { readSmallFile } from '../read-file.js';
import { type Clock, yieldToEventLoop } from '../time/clock.js';
import { listPids, listProcNames, readCommand, readProcLink, readProcText } from './proc-files.js';

export type UserSearchLimits = Readonly<typeof defaultSearchLimits>;

export const defaultSearchLimits = {
  /** Limit of processes and links that are read. */
  maxEntries: 1_000_000,
  /** Limit of all mount tables together. */
  maxBytes: 64_000_000,
  maxMs: 5000,
  maxHolders: 1000,
};

export interface GenerationUserSearch {
  /** The directory `policy/` of the host. */
  readonly policy: string;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Mount point of the process file system; /proc by default. */
  readonly proc?: string;
  readonly limits?: Partial<UserSearchLimits>;
}

export interface GenerationUserReport {
  readonly holders: readonly GenerationUser[];
  /** False if a limit ended the search; other processes may use a generation then. */
  readonly isComplete: boolean;
  /** Number of processes that were read. */
  readonly processes: number;
  /** Number of processes with links that this user may not read. */
  readonly unseen: number;
}

/** Finds the users of generations and trees. Processes that end or change meanwhile cause no error. */
export async function findGenerationUsers(search: GenerationUserSearch): Promise<GenerationUserReport> {
  const walk = startWalk(search);
  if (walk === undefined) return { holders: [], isComplete: false, processes: 0, unseen: 0 };
  const seen: ProcessPlace[] = [];
  for (const pid of listPids(walk.proc)) {
    if (!(await walk.mayGoOn(1))) break;
    const process = readProcessPlace(walk, pid);
    if (process !== undefined) seen.push(process);
  }
  // In a second pass, because a root or an open directory may be below a mount that only another process shows.
  for (const process of seen) {
    if (!(await readProcessLinks(walk, process))) break;
  }
  const { holders, limits, complete, unseen } = walk;
  return {
    holders: [...holders.values()],
    isComplete: complete && holders.size < limits.maxHolders,
    processes: seen.length,
    unseen,
  };
}

type ProcessPlace = { readonly pid: number; readonly namespace: string };

type Walk = NonNullable<ReturnType<typeof startWalk>>;

const sliceMs = 5;

function startWalk({ policy, clock, proc = '/proc', limits: own }: GenerationUserSearch) {
  const limits = { ...defaultSearchLimits, ...own };
  const ownMounts = parseMountInfo(readProcText(join(proc, 'self', 'mountinfo'), limits.maxBytes) ?? '');
  const place = locateFile(fs.realpathSync(policy), ownMounts);
  if (place === undefined) return undefined;
  const { text: ownNamespace } = readProcLink(join(proc, 'self', 'ns', 'mnt'));
  const begunMs = clock.monotonicMs();
  let sliceBegunMs = begunMs;
  let entries = 0;
  const walk = {
    proc,
    limits,
    policy: place,
    ownPid: process.pid,
    ownNamespace,
    ownMounts,
    /** Mount tables by mount namespace. */
    mounts: new Map<string | undefined, readonly Mount[]>([[ownNamespace, ownMounts]]),
    /** The tables that were read: one for each namespace and root directory, because a table is limited to the root. */
    tables: new Set<string>(),
    holders: new Map<string, GenerationUser>(),
    bytesLeft: limits.maxBytes,
    unseen: 0,
    complete: true,
    /** Counts entries and pauses for the event loop. Returns false after a limit was reached. */
    mayGoOn: async (count: number): Promise<boolean> => {
      entries += count;
      const nowMs = clock.monotonicMs();
      if (entries > limits.maxEntries || nowMs - begunMs > limits.maxMs) walk.complete = false;
      if (nowMs - sliceBegunMs > sliceMs) {
        await yieldToEventLoop();
        sliceBegunMs = clock.monotonicMs();
      }
      return walk.complete;
    },
  };
  noteMounts(walk, ownMounts);
  return walk;
}

/** Reads the mount table of a process if it was not read yet. */
function readProcessPlace(walk: Walk, pid: number): ProcessPlace | undefined {
  const directory = join(walk.proc, String(pid));
  const namespace = readProcLink(join(directory, 'ns', 'mnt'));
  const root = readProcLink(join(directory, 'root'));
  if (namespace.text === undefined || root.text === undefined) {
    if (namespace.why === 'denied' || root.why === 'denied') {
      walk.unseen += 1;
      // Every user may read a mount table, but not which namespace it belongs to.
      readTable(walk, pid, '/');
    }
    return undefined;
  }
  const key = `${namespace.text} ${root.text}`;
  // The complete table of the namespace of this process is known already.
  if (namespace.text !== walk.ownNamespace && !walk.tables.has(key)) {
    walk.tables.add(key);
    const known = walk.mounts.get(namespace.text) ?? [];
    walk.mounts.set(namespace.text, [...known, ...readTable(walk, pid, root.text)]);
  }
  return { pid, namespace: namespace.text };
}

function readTable(walk: Walk, pid: number, root: string): Mount[] {
  const read = readSmallFile(join(walk.proc, String(pid), 'mountinfo'), { maxBytes: walk.bytesLeft });
  if (read.kind !== 'read') {
    // Without a cause the table is longer than the remaining limit; otherwise the process has ended.
    if (read.kind === 'refused' && read.cause === undefined) walk.complete = false;
    return [];
  }
  walk.bytesLeft -= read.bytes.length;
  const mounts = parseMountInfo(read.bytes.toString('utf8'), root);
  noteMounts(walk, mounts, pid);
  return mounts;
}

function noteMounts(walk: Walk, mounts: readonly Mount[], pid?: number): void {
  for (const { device, root, mountPoint, lowerDirectories } of mounts) {
    const of = { what: 'mount', path: mountPoint, ...given({ pid }) } as const;
    note(walk, { device, path: root }, of);
    for (const lower of lowerDirectories) note(walk, locateFile(lower, walk.ownMounts), of);
  }
}

/** @returns false after a limit was reached */
async function readProcessLinks(walk: Walk, { pid, namespace }: ProcessPlace): Promise<boolean> {
  // Files that this process itself has open are closed before a removal.
  if (pid === walk.ownPid) return true;
  const directory = join(walk.proc, String(pid));
  const mounts = walk.mounts.get(namespace) ?? [];
  for (const what of ['cwd', 'root'] as const)
    noteLink(walk, mounts, { pid, what, path: join(directory, what) });
  const { names, why } = listProcNames(join(directory, 'fd'));
  if (why === 'denied') walk.unseen += 1;
  for (let from = 0; from < names.length; from += 128) {
    const some = names.slice(from, from + 128);
    if (!(await walk.mayGoOn(some.length))) return false;
    for (const name of some) noteLink(walk, mounts, { pid, what: 'open', path: join(directory, 'fd', name) });
  }
  return walk.mayGoOn(2);
}

type HoldOf = Omit<GenerationUser, 'directory' | 'command'>;

/** Records the process as a user of the target of a link. @param link its path is that of the link */
function noteLink(walk: Walk, mounts: readonly Mount[], link: HoldOf): void {
  const { text } = readProcLink(link.path);
  // Sockets and pipes have no path, and devices are no policy.
  if (text?.startsWith('/') !== true || text.startsWith('/dev/')) return;
  note(walk, locateFile(text, mounts), { ...link, path: text });
}

function note(walk: Walk, place: FileLocation | undefined, of: HoldOf): void {
  const held = place && findCollectableDirectory(place, walk.policy);
  if (held === undefined || walk.holders.size >= walk.limits.maxHolders) return;
  // A mount of the host is in the table of every later namespace, and is counted once.
  const key = JSON.stringify([held, of.what, of.what === 'mount' ? of.path : of.pid]);
  if (walk.holders.has(key)) return;
  const command = of.pid === undefined ? undefined : readCommand(walk.proc, of.pid);
  walk.holders.set(key, { directory: held, ...of, ...given({ command }) });
}
