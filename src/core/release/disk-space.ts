// How much room a release needs on a disk, and whether a file system has it: from signed sizes alone before its archive
// is fetched, exactly when its manifest is read. Pure: what the file system has goes in as numbers.
import type { Manifest } from './manifest.js';

/** Bytes, and names of files and directories. */
export interface Space {
  readonly bytes: number;
  readonly inodes: number;
}

/** What a file system has left for us. */
export interface FreeSpace extends Space {
  readonly blockBytes: number;
  readonly totalBytes: number;
  /** 0 for a file system that makes inodes as they are needed. */
  readonly totalInodes: number;
}

/** What is missing, in the unit that is short. */
export interface Shortage {
  readonly unit: 'bytes' | 'inodes';
  /** With the margin. */
  readonly needed: number;
  readonly available: number;
}

/** Left free beside a release, for ledger, journal, history and log: small on a small disk. */
const maxMarginBytes = 16_000_000;
const maxMarginInodes = 100;
const marginShare = 0.05;

/** What a release makes beside the files of its tree: directories in staging, the record, links. */
const inodesBeside = 16;

/** What is known before a byte is asked for: the archive, and a tree of at least its size. */
export function spaceForArchive(archiveBytes: number, manifestBytes: number): Space {
  return { bytes: 2 * archiveBytes + manifestBytes, inodes: inodesBeside };
}

/** Of a name in its directory, generously. */
const entryBytes = 64;

/** What the tree of a manifest takes, its directories included. */
export function spaceForTree({ files }: Manifest, blockBytes: number): Space {
  const directories = new Set<string>(['.']);
  let bytes = 0;
  for (const { path, sizeBytes } of files) {
    bytes += Math.ceil(sizeBytes / blockBytes) * blockBytes + entryBytes;
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const parent = path.slice(0, end);
      if (directories.has(parent)) break;
      directories.add(parent);
    }
  }
  return {
    bytes: bytes + directories.size * blockBytes,
    inodes: files.length + directories.size + inodesBeside,
  };
}

export function addSpace(...parts: readonly Space[]): Space {
  const add = (sum: Space, { bytes, inodes }: Space): Space => ({
    bytes: sum.bytes + bytes,
    inodes: sum.inodes + inodes,
  });
  return parts.reduce(add, { bytes: 0, inodes: 0 });
}

/** @returns undefined when there is room for `space` and a margin beside it */
export function shortageOf(space: Space, free: FreeSpace): Shortage | undefined {
  const marginBytes = Math.min(maxMarginBytes, Math.ceil(free.totalBytes * marginShare));
  const bytes = space.bytes + marginBytes;
  if (free.bytes < bytes) return { unit: 'bytes', needed: bytes, available: free.bytes };
  const inodes = space.inodes + Math.min(maxMarginInodes, Math.ceil(free.totalInodes * marginShare));
  if (free.totalInodes === 0 || free.inodes >= inodes) return undefined;
  return { unit: 'inodes', needed: inodes, available: free.inodes };
}

/** @returns true when the file system has what was short before */
export function hasGrown({ unit, needed }: Pick<Shortage, 'unit' | 'needed'>, free: FreeSpace): boolean {
  return free[unit] >= needed;
}
