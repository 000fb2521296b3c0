// Watches the free space of a file system while a user's command writes to it, and decides when the command has used too
// much. Without quotas nothing else bounds the sum of the bytes of a command. Frees no space.
import { orUndefined } from '../../core/errors.js';
import { readFreeSpace } from './free-space.js';

export interface RemainingSpace {
  readonly bytes: number;
  /** Left out where the file system does not count them. */
  readonly inodes?: number;
}

export interface DiskGuardOptions {
  /** Any path on the file system. */
  readonly path: string;
  /** Returns undefined when the file system does not answer: the guard then does not abort. */
  readonly readFree?: (path: string) => RemainingSpace | undefined;
  readonly everyMs?: number;
}

/** In milliseconds: a fast disk writes about half a gigabyte in this time. */
const defaultEveryMs = 200;

/**
 * The limit is half of the free space, because other processes write to the same disk too.
 * @returns a signal that aborts when half of the bytes or inodes that were free at the start are used. Call `stop` in any
 *   case, also after an abort
 */
export function guardDisk({
  path,
  readFree = readRemainingSpace,
  everyMs = defaultEveryMs,
}: DiskGuardOptions): {
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

function isHalfUsed(before: RemainingSpace, now: RemainingSpace): boolean {
  if (now.bytes < before.bytes / 2) return true;
  return now.inodes !== undefined && before.inodes !== undefined && now.inodes < before.inodes / 2;
}

function readRemainingSpace(path: string): RemainingSpace | undefined {
  const free = orUndefined(() => readFreeSpace(path));
  return free && { bytes: free.bytes, ...(free.totalInodes === 0 ? {} : { inodes: free.inodes }) };
}
