// Compares the free space of a file system with the required space before a write, so that a release that does not fit
// leaves the disk unchanged: DISK_FULL with the required and the free amount. The rule is core/release/disk-space.ts.
// Frees no space.
import * as fs from 'node:fs';
import { isWritError, unlessRefused, WritError } from '../../core/errors.js';
import {
  addSpace,
  type FreeSpace,
  type Shortage,
  type Space,
  shortageOf,
} from '../../core/release/disk-space.js';
import { sizeText } from '../../core/size-text.js';
import { diskError } from './durable-fs.js';
import { mountOf, readMountPoints } from './mount-points.js';

/**
 * @returns the free bytes and inodes of the file system at `path`
 * @throws WritError DISK_* when the file system does not answer
 */
export function readFreeSpace(path: string): FreeSpace {
  try {
    const { bavail, bsize, blocks, ffree, files } = fs.statfsSync(path);
    return {
      bytes: bavail * bsize,
      inodes: ffree,
      blockBytes: bsize,
      totalBytes: blocks * bsize,
      totalInodes: files,
    };
  } catch (error) {
    throw diskError(error, { op: 'disk.room', path });
  }
}

export interface SpaceRequirement {
  /** Any path on the file system. */
  readonly path: string;
  /** The subject of the message, as `access 7`. */
  readonly what: string;
  readonly space: Space;
  /** The part of `space` that is on the disk already. */
  readonly written?: Space;
}

/** @throws WritError DISK_FULL with facts needed, available, unit and path; DISK_* when the file system does not answer */
export function requireFreeSpace({ path, what, space, written }: SpaceRequirement): void {
  const free = readFreeSpace(path);
  const shortage = shortageOf(space, { ...free, ...addSpace(free, ...(written ? [written] : [])) });
  if (shortage !== undefined) throw diskFullError(shortage, { path, what });
}

/** Makes every DISK_FULL error with amounts, because agent/select/space-memory.ts reads these facts again. */
export function diskFullError(
  { unit, needed, available }: Shortage,
  { path, what, cause }: { readonly path: string; readonly what: string; readonly cause?: unknown },
): WritError {
  const amount = (count: number): string => (unit === 'bytes' ? sizeText(count) : `${count} ${unit}`);
  const df = `df -${unit === 'bytes' ? 'h' : 'i'} ${mountPointOrPath(path)}`;
  return new WritError('DISK_FULL', `${what} needs ${amount(needed)}, and ${amount(available)} are free`, {
    facts: { needed, available, unit, path },
    hint: `Free ${amount(Math.max(0, needed - available))} there (\`${df}\`); the agent tries again when there is enough.`,
    cause,
  });
}

/** Names the mount point, because a staging directory no longer exists when a person reads the hint. */
function mountPointOrPath(path: string): string {
  return unlessRefused(() => mountOf(path, readMountPoints())) ?? path;
}

/**
 * Adds the required and the free amount to a DISK_FULL error of a write, because ENOSPC has no amounts.
 * @returns `error` itself for any other error, and when the file system does not answer
 */
export function withRequiredSpace(
  error: unknown,
  { path, what, space }: Omit<SpaceRequirement, 'written'>,
): unknown {
  if (!isWritError(error) || error.code !== 'DISK_FULL' || 'needed' in error.facts) return error;
  try {
    const free = readFreeSpace(path);
    const shortage = shortageOf(space, { ...free, bytes: 0 }) ?? { unit: 'bytes', needed: space.bytes };
    return diskFullError({ ...shortage, available: free.bytes }, { path, what, cause: error });
  } catch (unanswered) {
    if (!isWritError(unanswered)) throw unanswered;
    return error;
  }
}
