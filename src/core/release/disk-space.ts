// The free space that a release needs, and whether a file system has it. Estimates from signed sizes before the archive is fetched,
// and computes it from the manifest afterwards. Pure.
import type { Manifest } from './manifest.js';

/** Bytes, and inodes of files and directories. */
export interface Space {
  readonly bytes: number;
  readonly inodes: number;
}

/** The free space of a file system. */
export interface FreeSpace extends Space {
  readonly blockBytes: number;
  readonly totalBytes: number;
  /** 0 for a file system that creates inodes on demand. */
  readonly totalInodes: number;
}

/** The missing space, in the unit that does not suffice. */
export interface Shortage {
  readonly unit: 'bytes' | 'inodes';
  /** Including the margin. */
  readonly needed: number;
  readonly available: number;
}

/** Margin that stays free for ledger, journal, history and log; smaller on a small disk. */
const maxMarginBytes = 16_000_000;
const maxMarginInodes = 100;
const marginShare = 0.05;

/** Inodes that a release needs besides its tree: directories in staging, the record, links. */
const inodesBeside = 16;

/** Estimates the space before the fetch: the archive, and a tree of at least its size. */
export function spaceForArchive(archiveBytes: number, manifestBytes: number): Space {
  return { bytes: 2 * archiveBytes + manifestBytes, inodes: inodesBeside };
}

/** Upper estimate of the bytes of a name in its directory. */
const entryBytes = 64;

/** @returns the space for the tree of a manifest, with its directories */
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

/** @returns the sums of bytes and inodes; 0 without parts */
export function addSpace(...parts: readonly Space[]): Space {
  const add = (sum: Space, { bytes, inodes }: Space): Space => ({
    bytes: sum.bytes + bytes,
    inodes: sum.inodes + inodes,
  });
  return parts.reduce(add, { bytes: 0, inodes: 0 });
}

/** @returns undefined if the file system has space for `space` and a margin */
export function shortageOf(space: Space, free: FreeSpace): Shortage | undefined {
  const marginBytes = Math.min(maxMarginBytes, Math.ceil(free.totalBytes * marginShare));
  const bytes = space.bytes + marginBytes;
  if (free.bytes < bytes) return { unit: 'bytes', needed: bytes, available: free.bytes };
  const inodes = space.inodes + Math.min(maxMarginInodes, Math.ceil(free.totalInodes * marginShare));
  if (free.totalInodes === 0 || free.inodes >= inodes) return undefined;
  return { unit: 'inodes', needed: inodes, available: free.inodes };
}

/** @returns true if as many bytes or inodes are free now as were needed */
export function isNowFree({ unit, needed }: Pick<Shortage, 'unit' | 'needed'>, free: FreeSpace): boolean {
  return free[unit] >= needed;
}
