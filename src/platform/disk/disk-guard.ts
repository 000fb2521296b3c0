// Watches how full a file system becomes while somebody else's command may write to it. Owns when that is too much:
// without quotas nothing else bounds the sum of what a command writes. Frees nothing.
import * as fs from 'node:fs';
import { isSystemError } from '../../core/errors.js';

export interface FreeRoom {
  readonly bytes: number;
  /** Left out where the file system does not count them. */
  readonly inodes?: number;
}

export interface DiskGuard {
  /** Aborts when half of what was free at the beginning is used up. */
  readonly signal: AbortSignal;
  stop(): void;
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

/** Half: others write there too, and a disk with room left is nobody's emergency. Stop it in any case. */
export function guardDisk(options: DiskGuardOptions): DiskGuard {
  const { path, readFree = readFreeRoom, everyMs = defaultEveryMs } = options;
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
  try {
    const { bavail, bsize, ffree, files } = fs.statfsSync(path);
    return { bytes: bavail * bsize, ...(files === 0 ? {} : { inodes: ffree }) };
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
