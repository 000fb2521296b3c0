// Writes the files of a candidate tree into the jail, or copies them there: each created exclusively, digested, given its mode
// and time and closed before the next. Knows nothing of archives; its paths have passed the entry rules. Flushes
// nothing: one `sync -f` does that for the whole tree, before the swap.
import { createHash, hash } from 'node:crypto';
import { closeSync, readSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { digestHex } from '../../core/names.js';
import { addSpace, type Space, spaceForTree } from '../../core/release/disk-space.js';
import type { Manifest, ManifestFile } from '../../core/release/manifest.js';
import { type RoomOptions, readFreeSpace, requireRoom, withNeed } from '../../platform/disk/disk-room.js';
import type { DurableFs, OpenFile } from '../../platform/disk/durable-fs.js';
import type { Pace } from '../../platform/time/rate-limit.js';
import { executableMode } from '../generations/verify-tree.js';

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
  /** For people, as `access 7`. */
  readonly what: string;
  /** What the release will have on the disk beside its tree, and what of that is there already. */
  readonly beside: { readonly written: Space; readonly toCome: Space };
}

/** First the room for all, then one file at a time: open, write, close. */
export interface TreeWriter {
  /** Asked before the first file. @throws WritError DISK_FULL when there is no room for all of them */
  requireRoom(manifest: Manifest): void;
  /** @returns the error, and for a disk that filled up meanwhile one that says what is needed */
  explain(error: unknown): unknown;
  open(file: ManifestFile): void;
  write(chunk: Buffer): void;
  /** @throws WritError MANIFEST_MISMATCH when the content is not what the manifest says */
  close(): void;
  /**
   * In place of open, write and close: a copy of a file of this disk, digested as it is there now.
   * @throws WritError as close; and what the pace throws
   */
  copy(file: ManifestFile, from: OpenFile, pace: Pace): Promise<void>;
  /** Closes what is open; for the way out after an error. */
  abandon(): void;
}

/** All that a release needs, and how much of it is there already. */
function roomFor(
  { treePath, what, beside: { written, toCome } }: Pick<TreeOptions, 'treePath' | 'what' | 'beside'>,
  manifest: Manifest,
): RoomOptions {
  const path = dirname(treePath);
  const tree = spaceForTree(manifest, readFreeSpace(path).blockBytes);
  return { path, what, written, space: addSpace(tree, toCome) };
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
  let room: RoomOptions | undefined;
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
    requireRoom: (manifest) => {
      room = roomFor(options, manifest);
      requireRoom(room);
    },
    explain: (error) => (room === undefined ? error : withNeed(error, room)),
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
        rightsOf(options, file),
      );
      // Of what is read at once a byte too many is seen at once.
      const digest = file.sizeBytes < buffer.length ? createContentDigest(file) : digestInPieces();
      current = { file, path, descriptor, digest };
      // Never what was read of the other one: only what lies here can be vouched for.
      await digestAll(current, buffer, pace);
      durable.setTime('stage.copy:time', current, mtimeSeconds);
      closeDescriptor();
      requireDigest(file, digest.hex());
    },
    abandon: closeDescriptor,
  };
}

function createFile(options: TreeOptions, path: string, file: ManifestFile): number {
  return options.fs.openNew('stage.file:create', path, rightsOf(options, file));
}

function rightsOf({ mode, groupId }: TreeOptions, file: ManifestFile): { mode: number; groupId?: number } {
  return { mode: file.executable ? executableMode(mode) : mode, ...given({ groupId }) };
}

/** Smaller files are copied and digested by one read each. */
const bufferBytes = 131_072;

/** At most one byte more than the file has: what grew is another file. */
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
    // Of a regular file that is its end.
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
  /** @returns of all pieces; asked once */
  hex(): string;
}

function digestInPieces(): ContentDigest {
  const streamed = createHash('sha256');
  return { update: (piece) => void streamed.update(piece), hex: () => streamed.digest('hex') };
}

/** Most files of a policy arrive in one piece: one call for it costs a fifth of a Hash that is made, fed and asked. */
function createContentDigest({ sizeBytes }: ManifestFile): ContentDigest {
  let streamed: ContentDigest | undefined;
  let whole: string | undefined;
  return {
    update: (piece) => {
      // What came behind it would be written, and be in no digest.
      if (whole !== undefined) throw new WritError('INTERNAL', 'content after the end of a file');
      if (streamed === undefined && piece.length === sizeBytes) {
        whole = hash('sha256', piece, 'hex');
        return;
      }
      streamed ??= digestInPieces();
      streamed.update(piece);
    },
    hex: () => whole ?? (streamed ?? digestInPieces()).hex(),
  };
}

function requireDigest(file: ManifestFile, actual: string): void {
  if (actual === digestHex(file.digest)) return;
  throw new WritError('MANIFEST_MISMATCH', `${file.path} is not the file that the manifest lists`, {
    facts: { path: file.path, expected: file.digest, actual: `sha256:${actual}` },
  });
}
