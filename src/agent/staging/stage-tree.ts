// Writes or copies the files of a candidate tree into staging. Each file is created exclusively, digested, gets its mode and time,
// and is closed before the next. The callers have verified the paths. No file is flushed here: one `sync -f` flushes the tree
// before the swap.
import { createHash, hash } from 'node:crypto';
import { closeSync, readSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { digestHex } from '../../core/names.js';
import { addSpace, type Space, spaceForTree } from '../../core/release/disk-space.js';
import type { Manifest, ManifestFile } from '../../core/release/manifest.js';
import type { DurableFs, OpenFile } from '../../platform/disk/durable-fs.js';
import {
  readFreeSpace,
  requireFreeSpace,
  type SpaceRequirement,
  withRequiredSpace,
} from '../../platform/disk/free-space.js';
import type { Pace } from '../../platform/time/rate-limit.js';
import { executableMode } from '../generations/verify-tree.js';

export interface TreeOptions {
  /** A new directory in staging, owned by this process alone. */
  readonly treePath: string;
  readonly fs: DurableFs;
  /** Mode of plain files, as 0644. */
  readonly mode: number;
  /** Group that owns the tree; the group of the agent if left out. */
  readonly groupId?: number;
  /** Modification time of every file, epoch seconds. */
  readonly mtimeSeconds: number;
  /** Name of the release in errors, as `access 7`. */
  readonly what: string;
  /** Disk space of the release without its tree: written already, and still to be written. */
  readonly otherSpace: { readonly written: Space; readonly pending: Space };
}

/** Requires the space for all files first, then writes one file at a time: open, write, close. */
export interface TreeWriter {
  /** Called before the first file. @throws WritError DISK_FULL if there is no space for all of them */
  requireSpace(manifest: Manifest): void;
  /** @returns the error; for a disk that became full meanwhile, an error with the needed space */
  explain(error: unknown): unknown;
  open(file: ManifestFile): void;
  write(chunk: Buffer): void;
  /** @throws WritError MANIFEST_MISMATCH if the content does not match the manifest */
  close(): void;
  /**
   * Replaces open, write and close: copies a file of this disk, and digests the new file.
   * @throws WritError as close; and the errors of the pace
   */
  copy(file: ManifestFile, from: OpenFile, pace: Pace): Promise<void>;
  /** Closes the open file after an error. */
  abandon(): void;
}

/** @returns the space that a release needs in all, and the part that is written already */
function computeSpaceNeed(
  { treePath, what, otherSpace: { written, pending } }: Pick<TreeOptions, 'treePath' | 'what' | 'otherSpace'>,
  manifest: Manifest,
): SpaceRequirement {
  const path = dirname(treePath);
  const tree = spaceForTree(manifest, readFreeSpace(path).blockBytes);
  return { path, what, written, space: addSpace(tree, pending) };
}

interface CurrentFile extends OpenFile {
  readonly file: ManifestFile;
  readonly digest: ContentDigest;
}

/** Creates the root of the tree and returns the writer. @throws WritError DISK_* */
export function createTreeWriter(options: TreeOptions): TreeWriter {
  const { treePath, mtimeSeconds, fs: durable } = options;
  const directories = new Set<string>();
  let current: CurrentFile | undefined;
  let need: SpaceRequirement | undefined;
  const buffer = Buffer.allocUnsafe(bufferBytes);
  makeDirectory(options, treePath);

  const ensureParent = (path: string): void => {
    const parent = dirname(path);
    if (parent === '.' || directories.has(parent)) return;
    ensureParent(parent);
    makeDirectory(options, join(treePath, parent));
    directories.add(parent);
  };
  const closeDescriptor = (): void => {
    const open = current;
    current = undefined;
    if (open !== undefined) closeSync(open.descriptor);
  };
  return {
    requireSpace: (manifest) => {
      need = computeSpaceNeed(options, manifest);
      requireFreeSpace(need);
    },
    explain: (error) => (need === undefined ? error : withRequiredSpace(error, need)),
    open: (file) => {
      ensureParent(file.path);
      const path = join(treePath, file.path);
      current = {
        file,
        path,
        descriptor: createFile(options, path, file),
        digest: createContentDigest(file),
      };
    },
    write: (chunk) => {
      if (current === undefined) throw new WritError('INTERNAL', 'content without a file');
      durable.write('stage.file:write', current, chunk);
      current.digest.update(chunk);
    },
    close: () => {
      if (current === undefined) throw new WritError('INTERNAL', 'an end without a file');
      const { digest, file } = current;
      durable.setTime('stage.file:time', current, mtimeSeconds);
      closeDescriptor();
      requireDigest(file, digest.hex());
    },
    copy: async (file, from, pace) => {
      ensureParent(file.path);
      const path = join(treePath, file.path);
      const descriptor = await durable.copyNew(
        'stage.copy',
        { descriptor: from.descriptor, sizeBytes: file.sizeBytes, buffer },
        path,
        permissionsOf(options, file),
      );
      // A file that one read covers needs one digest call, because that read also shows an additional byte.
      const digest = file.sizeBytes < buffer.length ? createContentDigest(file) : digestInPieces();
      current = { file, path, descriptor, digest };
      // Digests the new file and not the bytes read from the base, because only this proves the bytes on disk.
      await digestAll(current, buffer, pace);
      durable.setTime('stage.copy:time', current, mtimeSeconds);
      closeDescriptor();
      requireDigest(file, digest.hex());
    },
    abandon: closeDescriptor,
  };
}

function createFile(options: TreeOptions, path: string, file: ManifestFile): number {
  return options.fs.openNew('stage.file:create', path, permissionsOf(options, file));
}

function permissionsOf(
  { mode, groupId }: TreeOptions,
  file: ManifestFile,
): { mode: number; groupId?: number } {
  return { mode: file.executable ? executableMode(mode) : mode, ...given({ groupId }) };
}

/** Smaller files are copied and digested by one read each. */
const bufferBytes = 131_072;

/** Reads at most one byte more than the size in the manifest, because a longer file has another digest anyway. */
async function digestAll(
  { file, descriptor, digest }: CurrentFile,
  buffer: Buffer,
  pace: Pace,
): Promise<void> {
  const end = file.sizeBytes + 1;
  for (let at = 0; at < end; ) {
    const length = Math.min(buffer.length, end - at);
    const count = readSync(descriptor, buffer, 0, length, at);
    if (count > 0) digest.update(buffer.subarray(0, count));
    // A short read of a regular file is its end.
    if (count < length) return;
    at += count;
    await pace.spent(count);
  }
}

function makeDirectory({ fs: durable, mode, groupId }: TreeOptions, path: string): void {
  durable.makeDirectory('stage.tree', path, executableMode(mode));
  if (groupId !== undefined) durable.changeGroup('stage.tree:group', path, groupId);
}

/** SHA-256 over the bytes of one file, in pieces of any size. */
interface ContentDigest {
  update(piece: Buffer): void;
  /** @returns the digest of all pieces; called once */
  hex(): string;
}

function digestInPieces(): ContentDigest {
  const streamed = createHash('sha256');
  return { update: (piece) => void streamed.update(piece), hex: () => streamed.digest('hex') };
}

/** Digests a file in one piece by one call, because most files are one piece and a Hash object costs five times as much. */
function createContentDigest({ sizeBytes }: ManifestFile): ContentDigest {
  let streamed: ContentDigest | undefined;
  let completeDigest: string | undefined;
  return {
    update: (piece) => {
      // Later bytes would be written and not digested.
      if (completeDigest !== undefined) throw new WritError('INTERNAL', 'content after the end of a file');
      if (streamed === undefined && piece.length === sizeBytes) {
        completeDigest = hash('sha256', piece, 'hex');
        return;
      }
      streamed ??= digestInPieces();
      streamed.update(piece);
    },
    hex: () => completeDigest ?? (streamed ?? digestInPieces()).hex(),
  };
}

function requireDigest(file: ManifestFile, actual: string): void {
  if (actual === digestHex(file.digest)) return;
  throw new WritError('MANIFEST_MISMATCH', `${file.path} is not the file that the manifest lists`, {
    facts: { path: file.path, expected: file.digest, actual: `sha256:${actual}` },
  });
}
