// Asks the file system for room before something is written to it, so that a release that cannot fit leaves the disk
// as it is: DISK_FULL with what is needed and what there is. Decides by core/release/disk-space; frees nothing.
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

/** @throws WritError DISK_* when the file system does not answer */
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

export interface RoomOptions {
  /** Any path on the file system. */
  readonly path: string;
  /** For people: what it is for, as `access 7`. */
  readonly what: string;
  readonly space: Space;
  /** What of it is written already. */
  readonly written?: Space;
}

/** @throws WritError DISK_FULL with facts needed, available, unit and path; DISK_* */
export function requireRoom({ path, what, space, written }: RoomOptions): void {
  const free = readFreeSpace(path);
  const shortage = shortageOf(space, { ...free, ...addSpace(free, ...(written ? [written] : [])) });
  if (shortage !== undefined) throw noRoom(shortage, { path, what });
}

/** The one form of it: the memory of full disks reads the facts again. */
export function noRoom(
  { unit, needed, available }: Shortage,
  { path, what, cause }: { readonly path: string; readonly what: string; readonly cause?: unknown },
): WritError {
  const amount = (count: number): string => (unit === 'bytes' ? sizeText(count) : `${count} ${unit}`);
  const df = `df -${unit === 'bytes' ? 'h' : 'i'} ${lastingPlace(path)}`;
  return new WritError('DISK_FULL', `${what} needs ${amount(needed)}, and ${amount(available)} are free`, {
    facts: { needed, available, unit, path },
    hint: `Free ${amount(Math.max(0, needed - available))} there (\`${df}\`); the agent tries again when there is enough.`,
    cause,
  });
}

/** A staging area is gone when a person reads of it: the file system that it was on is not. */
function lastingPlace(path: string): string {
  return unlessRefused(() => mountOf(path, readMountPoints())) ?? path;
}

/** A disk that filled up meanwhile says no number: what was to be written is what is needed. */
export function withNeed(error: unknown, { path, what, space }: Omit<RoomOptions, 'written'>): unknown {
  if (!isWritError(error) || error.code !== 'DISK_FULL' || 'needed' in error.facts) return error;
  try {
    const free = readFreeSpace(path);
    const shortage = shortageOf(space, { ...free, bytes: 0 }) ?? { unit: 'bytes', needed: space.bytes };
    return noRoom({ ...shortage, available: free.bytes }, { path, what, cause: error });
  } catch (unanswered) {
    if (!isWritError(unanswered)) throw unanswered;
    return error;
  }
}
