// Watches how full a file system becomes while somebody else's command may write to it. Owns when that is too much:
// without quotas nothing else bounds the sum of what a command writes. Frees nothing.
import { orUndefined } from '../../core/errors.js';
import { readFreeSpace } from './disk-room.js';

export interface FreeRoom {
  readonly bytes: number;
  /** Left out where the file system does not count them. */
  readonly inodes?: number;
}

export interface DiskGuardOptions {
  /** Any path on the file system. */
  readonly path: string;
  /** undefined: it does not answer just now, which is no reason to end anything. */
  readonly readFree?: (path: string) => FreeRoom | undefined;
  readonly everyMs?: number;
}

/** A disk that is fast writes about half a gigabyte meanwhile. */
const defaultEveryMs = 200;

/**
 * Half: others write there too, and a disk with room left is nobody's emergency. Stop it in any case.
 * @returns a signal that aborts when half of what was free at the beginning is used up
 */
export function guardDisk({ path, readFree = readFreeRoom, everyMs = defaultEveryMs }: DiskGuardOptions): {
  readonly signal: AbortSignal;
  stop(): void;
} {
  const before = readFree(path);
  const full = new AbortController();
  const timer = setInterval(() => {
    const now = readFree(path);
    if (before !== undefined && now !== undefined && isHalfUsed(before, now)) full.abort();
  }, everyMs);
  return { signal: full.signal, stop: () => clearInterval(timer) };
}

function isHalfUsed(before: FreeRoom, now: FreeRoom): boolean {
  if (now.bytes < before.bytes / 2) return true;
  return now.inodes !== undefined && before.inodes !== undefined && now.inodes < before.inodes / 2;
}

function readFreeRoom(path: string): FreeRoom | undefined {
  const free = orUndefined(() => readFreeSpace(path));
  return free && { bytes: free.bytes, ...(free.totalInodes === 0 ? {} : { inodes: free.inodes }) };
}
