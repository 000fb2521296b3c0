// Packs a tree that was read from SOURCE into its archive: tar under Brotli, with the same bytes for the same tree. The
// manifest is first, then the files by path bytes; times, owners and modes of SOURCE have no effect. Streams, so that
// memory does not grow with the bundle. Signs nothing and knows no repository.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { Header, Pax } from 'tar';
import { WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { digestHex } from '../../core/names.js';
import { type ManifestFile, manifestName } from '../../core/release/manifest.js';
import type { WorkReport } from '../../core/work-report.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { compressFile } from './compress-file.js';
import { changedSource, openSourceFile } from './source-files.js';
import { type PackedTree, readBytes } from './source-tree.js';

interface PackOptions {
  /** The path of the new archive; it must not exist. */
  readonly archivePath: string;
  readonly limits: ArchiveLimits;
  readonly durableFs: DurableFs;
  readonly report?: Pick<WorkReport, 'progress'>;
  readonly signal?: AbortSignal;
}

/**
 * Writes and flushes the archive of a tree. The caller flushes its directory. Leaves no file after a failure.
 * @throws WritError SOURCE_REFUSED when SOURCE changed since it was read, or the archive would exceed a limit of hosts
 *   (size, ratio); INTERRUPTED; DISK_*
 */
export async function packBundle(tree: PackedTree, options: PackOptions) {
  const { archivePath, durableFs, limits } = options;
  const written = await compressFile(watched(tree, options), {
    path: archivePath,
    op: writeOp,
    sizeBytes: tarBytes(tree),
    maxBytes: limits.maxArchiveBytes,
    durableFs,
  });
  if (written === undefined) throw tooLarge(limits.maxArchiveBytes);
  const { bytes: archiveBytes, digest: archiveDigest } = written;
  try {
    requireRatio(tree, archiveBytes, limits);
  } catch (error) {
    fs.rmSync(archivePath, { force: true });
    throw error;
  }
  return { archivePath, archiveBytes, archiveDigest };
}

const writeOp = 'repo.archive:write';

function* watched(tree: PackedTree, { report, signal }: PackOptions): Generator<Buffer> {
  const total = tarBytes(tree);
  let done = 0;
  for (const chunk of tarChunks(tree)) {
    if (signal?.aborted) throw new WritError('INTERRUPTED', 'the packing was interrupted');
    yield chunk;
    done += chunk.length;
    report?.progress('pack', { done, total, unit: 'bytes' });
  }
}

const blockBytes = 512;

function* tarChunks({ place, manifest, manifestBytes, contents }: PackedTree): Generator<Buffer> {
  yield tarHeader(manifestName, manifestBytes.length, { executable: false });
  yield manifestBytes;
  yield padding(manifestBytes.length);
  for (const file of manifest.files) {
    yield tarHeader(file.path, file.sizeBytes, file);
    const content = contents?.get(file.path);
    if (content === undefined) yield* readAgain(place, file);
    else yield content;
    yield padding(file.sizeBytes);
  }
  yield Buffer.alloc(2 * blockBytes);
}

/** Reads a file a second time, and compares it with its manifest entry. */
function* readAgain(place: PackedTree['place'], file: ManifestFile): Generator<Buffer> {
  const opened = openSourceFile(place, file.path);
  try {
    const digest = createHash('sha256');
    let sizeBytes = 0;
    for (;;) {
      const chunk = Buffer.allocUnsafe(Math.min(readBytes, file.sizeBytes - sizeBytes + 1));
      const count = fs.readSync(opened.descriptor, chunk, 0, chunk.length, null);
      if (count === 0) break;
      sizeBytes += count;
      // Attack: bytes beyond the announced size would be read as the next header.
      if (sizeBytes > file.sizeBytes) throw changedSource(file.path);
      digest.update(chunk.subarray(0, count));
      yield chunk.subarray(0, count);
    }
    const same = sizeBytes === file.sizeBytes && digest.digest('hex') === digestHex(file.digest);
    if (!same || opened.executable !== file.executable) throw changedSource(file.path);
  } finally {
    fs.closeSync(opened.descriptor);
  }
}

const noTime = new Date(0);

/** The header of an entry in a Writ archive; all fields except path, size and executable bit are fixed. */
export function tarHeader(path: string, sizeBytes: number, { executable }: { executable: boolean }): Buffer {
  const owner = { uid: 0, gid: 0, uname: '', gname: '' };
  const mode = executable ? 0o755 : 0o644;
  const header = new Header({ path, size: sizeBytes, mode, mtime: noTime, type: 'File', ...owner });
  const block = Buffer.alloc(blockBytes);
  // A long or non-ASCII name does not fit the old header, so an extended header contains it.
  if (!header.encode(block)) return block;
  return Buffer.concat([new Pax({ path }).encode(), block]);
}

/** @returns the number of zero bytes after a file, up to the next block */
export function tarPaddingBytes(sizeBytes: number): number {
  return (blockBytes - (sizeBytes % blockBytes)) % blockBytes;
}

function padding(sizeBytes: number): Buffer {
  return Buffer.alloc(tarPaddingBytes(sizeBytes));
}

function tarBytes(tree: PackedTree): number {
  const files = [{ sizeBytes: tree.manifestBytes.length }, ...tree.manifest.files];
  const blocks = files.reduce((total, file) => total + 1 + Math.ceil(file.sizeBytes / blockBytes), 2);
  return blocks * blockBytes;
}

/** Hosts refuse an archive with a higher ratio as a decompression bomb. */
function requireRatio(tree: PackedTree, archiveBytes: number, limits: ArchiveLimits): void {
  const actual = Math.ceil(tarBytes(tree) / archiveBytes);
  if (actual <= limits.maxRatio) return;
  throw new WritError(
    'SOURCE_REFUSED',
    'SOURCE compresses too well: hosts would refuse it as a decompression bomb',
    {
      facts: { expected: limits.maxRatio, actual },
      hint: 'Remove the file that compresses to almost nothing.',
    },
  );
}

function tooLarge(expected: number): WritError {
  return new WritError('SOURCE_REFUSED', 'the archive is too large', { facts: { expected } });
}
