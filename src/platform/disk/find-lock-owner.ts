// The door to who holds a lock file: asks /proc which descriptors have it (fdinfo), and reads the note in the file.
// Bounded, lets others run, and only ever used by somebody who did not get the lock.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { listPids, listProcNames, readCommand, readProcLink, readProcText } from '../process/proc-files.js';
import { findProcess } from '../process/processes.js';
import { letOthersRun } from '../time/clock.js';
import {
  holdsFlock,
  judgeLockHolder,
  type LockHolder,
  type LockNote,
  type LockProcess,
  maxNoteBytes,
  parseLockNote,
} from './lock-owner-rules.js';

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
  return judgeLockHolder({ note, holders, ...(noted ? { noted } : {}) });
}

interface LockFile {
  readonly name: string;
  readonly inode: bigint;
  readonly proc: string;
}

function livingWriter({ pid, startTicks }: LockNote): LockProcess | undefined {
  const found = seenProcess(pid);
  return found?.startTicks === startTicks ? found : undefined;
}

function seenProcess(pid: number, proc = '/proc'): LockProcess | undefined {
  const found = findProcess(pid);
  if (found === undefined) return undefined;
  const command = readCommand(proc, pid);
  return { pid, startTicks: found.startTicks, ...(command === undefined ? {} : { command }) };
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
