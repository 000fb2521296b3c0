// Writes the files of a candidate tree into the jail: each created exclusively, digested, given its mode and
// time and closed before the next. Knows nothing of archives; its paths have passed the entry rules. Flushes
// nothing: one `sync -f` does that for the whole tree, before the swap.
import { createHash, type Hash } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { WritError } from '../core/errors.js';
import type { ManifestFile } from '../core/manifest.js';
import { digestHex } from '../core/names.js';
import { type DurableFs, diskError } from '../platform/durable-fs.js';

export interface TreeOptions {
  /** A new directory in staging, owned by this process alone. */
  readonly treePath: string;
  readonly fs: DurableFs;
  /** Mode of plain files, as 0644. */
  readonly mode: number;
  /** Group that owns the tree; the agent's own if left out. */
  readonly groupId?: number;
  /** Modification time of every file, epoch seconds. */
  readonly mtimeSeconds: number;
}

/** One file at a time: open, write, close. */
export interface TreeWriter {
  open(file: ManifestFile): void;
  write(chunk: Buffer): void;
  /** @throws WritError MANIFEST_MISMATCH when the content is not what the manifest says */
  close(): void;
  /** Closes what is open; for the way out after an error. */
  abandon(): void;
}

/** The mode of directories and executables: whoever may read a plain file may enter and run. */
export function executableMode(mode: number): number {
  return mode | ((mode & 0o444) >> 2);
}

interface OpenFile {
  readonly file: ManifestFile;
  readonly path: string;
  readonly descriptor: number;
  readonly digest: Hash;
}

/** Creates the root of the tree and returns the writer. @throws WritError DISK_* */
export function createTreeWriter(options: TreeOptions): TreeWriter {
  const { treePath, mtimeSeconds } = options;
  const directories = new Set<string>();
  let current: OpenFile | undefined;
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
    if (open !== undefined) fs.closeSync(open.descriptor);
  };
  return {
    open: (file) => {
      ensureParent(file.path);
      const path = join(treePath, file.path);
      current = { file, path, descriptor: createFile(options, path, file), digest: createHash('sha256') };
    },
    write: (chunk) => {
      if (current === undefined) throw new WritError('INTERNAL', 'content without a file');
      const { descriptor, path, digest } = current;
      disk(path, () => {
        for (let written = 0; written < chunk.length; ) written += fs.writeSync(descriptor, chunk, written);
      });
      digest.update(chunk);
    },
    close: () => {
      if (current === undefined) throw new WritError('INTERNAL', 'an end without a file');
      const { descriptor, path, digest, file } = current;
      disk(path, () => fs.futimesSync(descriptor, mtimeSeconds, mtimeSeconds));
      closeDescriptor();
      requireDigest(file, digest);
    },
    abandon: closeDescriptor,
  };
}

// O_EXCL and O_NOFOLLOW: even a jail that somebody prepared with links is not written through.
const exclusive =
  fs.constants.O_CREAT | fs.constants.O_EXCL | fs.constants.O_WRONLY | fs.constants.O_NOFOLLOW;

function createFile({ mode, groupId }: TreeOptions, path: string, file: ManifestFile): number {
  return disk(path, () => {
    const descriptor = fs.openSync(path, exclusive, 0o600);
    try {
      if (groupId !== undefined) fs.fchownSync(descriptor, -1, groupId);
      // The mode of open() passes through the umask, and a change of group may clear bits.
      fs.fchmodSync(descriptor, file.executable ? executableMode(mode) : mode);
    } catch (error) {
      fs.closeSync(descriptor);
      throw error;
    }
    return descriptor;
  });
}

function makeDirectory({ fs: durableFs, mode, groupId }: TreeOptions, path: string): void {
  durableFs.makeDirectory('stage.tree', path, executableMode(mode));
  if (groupId !== undefined) disk(path, () => fs.chownSync(path, -1, groupId));
}

function requireDigest(file: ManifestFile, digest: Hash): void {
  const actual = digest.digest('hex');
  if (actual === digestHex(file.digest)) return;
  throw new WritError('MANIFEST_MISMATCH', `${file.path} is not the file that the manifest lists`, {
    facts: { path: file.path, expected: file.digest, actual: `sha256:${actual}` },
  });
}

function disk<Result>(path: string, act: () => Result): Result {
  try {
    return act();
  } catch (error) {
    throw diskError(error, { op: 'stage.tree', path });
  }
}
