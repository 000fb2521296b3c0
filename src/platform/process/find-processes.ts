// The door to who holds a part of `policy/`: walks /proc for mounts of every mount namespace that a process shows,
// working directories, root directories and open files. Bounded in entries, bytes and time; what vanishes meanwhile
// or may not be read is passed over and counted. Judges by core/status/mount-table, asks the files themselves nothing: a file of
// a dead network file system would hang whoever asks.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { given } from '../../core/given.js';
import type { FileLocation, GenerationUser, Mount } from '../../core/status/mount-table.js';
import { findCollectableDirectory, locateFile, parseMountInfo } from '../../core/status/mount-table.js';
import { readSmallFile } from '../read-file.js';
import { type Clock, letOthersRun } from '../time/clock.js';
import { listPids, listProcNames, readCommand, readProcLink, readProcText } from './proc-files.js';

export type UserSearchLimits = Readonly<typeof defaultSearchLimits>;

export const defaultSearchLimits = {
  /** Processes and links looked at. */
  maxEntries: 1_000_000,
  /** Of all tables of mounts together. */
  maxBytes: 64_000_000,
  maxMs: 5000,
  maxHolders: 1000,
};

export interface GenerationUserSearch {
  /** The public side of the host. */
  readonly policy: string;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Where the process file system is; /proc by default. */
  readonly proc?: string;
  readonly limits?: Partial<UserSearchLimits>;
}

export interface GenerationUserReport {
  readonly holders: readonly GenerationUser[];
  /** False if a limit ended the search; other processes may use a generation then. */
  readonly isComplete: boolean;
  /** Processes looked at. */
  readonly processes: number;
  /** Processes whose links this user may not read. */
  readonly unseen: number;
}

/** @returns who holds which generation or tree; never throws for what a process does meanwhile */
export async function findGenerationUsers(search: GenerationUserSearch): Promise<GenerationUserReport> {
  const walk = startWalk(search);
  if (walk === undefined) return { holders: [], isComplete: false, processes: 0, unseen: 0 };
  const seen: ProcessPlace[] = [];
  for (const pid of listPids(walk.proc)) {
    if (!(await walk.mayGoOn(1))) break;
    const process = readProcessPlace(walk, pid);
    if (process !== undefined) seen.push(process);
  }
  // Second, as a root or an open directory may lie behind a mount that another process shows.
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
    /** Tables by mount namespace. */
    mounts: new Map<string | undefined, readonly Mount[]>([[ownNamespace, ownMounts]]),
    /** Tables that were read: of each namespace one for each root directory, as a table ends at the root. */
    tables: new Set<string>(),
    holders: new Map<string, GenerationUser>(),
    bytesLeft: limits.maxBytes,
    unseen: 0,
    complete: true,
    /** Counts entries, lets others run, and says whether the bounds allow more. */
    mayGoOn: async (count: number): Promise<boolean> => {
      entries += count;
      const nowMs = clock.monotonicMs();
      if (entries > limits.maxEntries || nowMs - begunMs > limits.maxMs) walk.complete = false;
      if (nowMs - sliceBegunMs > sliceMs) {
        await letOthersRun();
        sliceBegunMs = clock.monotonicMs();
      }
      return walk.complete;
    },
  };
  noteMounts(walk, ownMounts);
  return walk;
}

/** Reads the process's table of mounts, where it shows one that was not seen yet. */
function readProcessPlace(walk: Walk, pid: number): ProcessPlace | undefined {
  const directory = join(walk.proc, String(pid));
  const namespace = readProcLink(join(directory, 'ns', 'mnt'));
  const root = readProcLink(join(directory, 'root'));
  if (namespace.text === undefined || root.text === undefined) {
    if (namespace.why === 'denied' || root.why === 'denied') {
      walk.unseen += 1;
      // Everybody may read a table of mounts; whose namespace it is cannot be told.
      readTable(walk, pid, '/');
    }
    return undefined;
  }
  const key = `${namespace.text} ${root.text}`;
  // Of our own namespace the whole table is known.
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
    // Longer than what is left; else the process is gone.
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

/** @returns false when a bound was reached */
async function readProcessLinks(walk: Walk, { pid, namespace }: ProcessPlace): Promise<boolean> {
  // What this process itself has open is work that is done by the time something is removed.
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

/** @param link its path is that of the link; who holds what it leads to is noted */
function noteLink(walk: Walk, mounts: readonly Mount[], link: HoldOf): void {
  const { text } = readProcLink(link.path);
  // Sockets, pipes and the like have no path; devices are nobody's policy.
  if (text?.startsWith('/') !== true || text.startsWith('/dev/')) return;
  note(walk, locateFile(text, mounts), { ...link, path: text });
}

function note(walk: Walk, place: FileLocation | undefined, of: HoldOf): void {
  const held = place && findCollectableDirectory(place, walk.policy);
  if (held === undefined || walk.holders.size >= walk.limits.maxHolders) return;
  // A mount of the host is in the table of every namespace that was made after it: it counts once.
  const key = JSON.stringify([held, of.what, of.what === 'mount' ? of.path : of.pid]);
  if (walk.holders.has(key)) return;
  const command = of.pid === undefined ? undefined : readCommand(walk.proc, of.pid);
  walk.holders.set(key, { directory: held, ...of, ...given({ command }) });
}
