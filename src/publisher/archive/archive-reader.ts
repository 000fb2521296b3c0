// Reads archives that Writ made: the manifest at the start, and for `writ inspect` every byte after it. These archives have
// exactly one form, so a general tar parser is not needed: each header must equal the header that the manifest implies.
import { createHash, type Hash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createBrotliDecompress } from 'node:zlib';
import type { DeltaRelease } from '../../core/delta/delta-format.js';
import { isWritError, WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { type Digest, digestFromHex, digestHex } from '../../core/names.js';
import { requireManifestLength } from '../../core/release/archive-bounds.js';
import { judgeKeptPath } from '../../core/release/entry-rules.js';
import {
  type ManifestFile,
  manifestDigest,
  manifestName,
  parseManifest,
} from '../../core/release/manifest.js';
import { createTarReader } from '../../core/release/tar-reader.js';
import type { More } from '../../core/work-report.js';
import { createPieceCollector } from '../../platform/process/heap.js';
import type { ListedRelease } from '../repository/listing.js';
import { archiveOf } from '../repository/release-files.js';
import { pathOf, type RepositoryLayout } from '../repository/repository-layout.js';
import { tarHeader, tarPaddingBytes } from './build-bundle.js';

export type ArchiveReport = Awaited<ReturnType<typeof inspectArchive>>;

/**
 * Verifies a complete archive: every file against the manifest, and no bytes that the manifest does not list.
 * @throws WritError ARCHIVE_MALFORMED, ARCHIVE_LIMIT, MANIFEST_MALFORMED, MANIFEST_MISMATCH
 */
export async function inspectArchive(path: string, limits: ArchiveLimits, more?: More) {
  const digest = createHash('sha256');
  let archiveBytes = 0;
  const watched = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of openArchive(path, limits)) {
      archiveBytes += chunk.length;
      more?.(chunk.length);
      digest.update(chunk);
      yield chunk;
    }
  };
  const { bytes, manifest } = await withReader(watched(), async (reader) => {
    const bytes = await readManifestBytes(reader, await sizeOf(path), limits);
    const manifest = parseManifest(bytes, limits);
    for (const file of manifest.files) await requireFile(reader, file);
    await requireZeros(reader, 1024);
    if ((await reader.take(1)).length > 0) throw malformed('it continues after its end');
    return { bytes, manifest };
  });
  const archiveDigest = digestFromHex(digest.digest('hex')) as Digest;
  return {
    archiveBytes,
    archiveDigest,
    manifest,
    manifestDigest: manifestDigest(bytes),
    manifestBytes: bytes.length,
  };
}

/** A listed release with an archive in the repository. */
export type StoredRelease = Pick<ListedRelease, 'file' | 'release'>;

/**
 * Reads the manifest of a release from its archive in the repository, for a comparison with it.
 * @returns undefined when the archive is missing or differs from the signed one, because a comparison is optional
 */
export function readManifestOf(
  layout: RepositoryLayout,
  stored: StoredRelease,
  limits: ArchiveLimits,
): Promise<DeltaRelease | undefined> {
  return undefinedIfInvalid(async () => {
    const bytes = await withReader(openStored(layout, stored, limits), (reader) =>
      readManifestBytes(reader, stored.file.length, limits),
    );
    if (manifestDigest(bytes) !== stored.release.manifest.digest) return undefined;
    return { manifest: parseManifest(bytes, limits, judgeKeptPath), manifestBytes: bytes };
  });
}

/**
 * Reads files from an archive in the repository, from its start to the last of these files.
 * @param wanted by path
 * @param take called for each of them; the returned function receives its bytes before their digest is verified, in buffers
 *   that are reused
 * @returns undefined when a file is missing, or differs from the manifest
 */
export function readStoredFiles(
  layout: RepositoryLayout,
  stored: StoredRelease,
  { limits, wanted }: { readonly limits: ArchiveLimits; readonly wanted: ReadonlyMap<string, ManifestFile> },
  take: (file: ManifestFile) => (chunk: Buffer) => void,
): Promise<'read' | undefined> {
  let left = wanted.size;
  let open: { file: ManifestFile; digest: Hash; write(chunk: Buffer): void } | undefined;
  const reader = createTarReader(
    {
      begin: ({ path }) => {
        const file = wanted.get(path.toString('utf8'));
        open = file && { file, digest: createHash('sha256'), write: take(file) };
      },
      data: (chunk) => {
        open?.digest.update(chunk);
        open?.write(chunk);
      },
      end: () => {
        if (open === undefined) return;
        if (open.digest.digest('hex') !== digestHex(open.file.digest)) throw mismatch(open.file.path);
        left -= 1;
      },
    },
    { maxPaxBytes: 2 * limits.maxPathBytes },
  );
  return undefinedIfInvalid(async () => {
    const archive = openStored(layout, stored, limits);
    try {
      for await (const chunk of decompress(archive)) {
        if (left === 0) break;
        reader.write(chunk);
      }
    } finally {
      await archive.return(undefined);
    }
    return left === 0 ? 'read' : undefined;
  });
}

function openStored(
  layout: RepositoryLayout,
  stored: StoredRelease,
  limits: ArchiveLimits,
): AsyncGenerator<Buffer> {
  const archive = archiveOf(stored);
  if (archive === undefined) throw malformed('it has no digest');
  return openArchive(join(layout.targets, pathOf(archive.place)), limits);
}

async function undefinedIfInvalid<T>(read: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isWritError(error) && !error.code.startsWith('DISK_')) return undefined;
    throw error;
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await fs.promises.stat(path)).size;
  } catch (error) {
    throw malformed(`${path} cannot be opened`, error);
  }
}

async function* openArchive(path: string, limits: ArchiveLimits): AsyncGenerator<Buffer> {
  const { O_RDONLY, O_NONBLOCK } = fs.constants;
  let handle: fs.promises.FileHandle;
  try {
    handle = await fs.promises.open(path, O_RDONLY | O_NONBLOCK);
  } catch (error) {
    throw malformed(`${path} cannot be opened`, error);
  }
  try {
    const status = await handle.stat();
    if (!status.isFile()) throw malformed(`${path} is not a regular file`);
    if (status.size > limits.maxArchiveBytes) throw tooLarge(limits.maxArchiveBytes, status.size);
    for await (const chunk of handle.createReadStream({ autoClose: false })) yield chunk as Buffer;
  } finally {
    await handle.close();
  }
}

/** The size of one piece, because each piece costs a switch to the decompressor's thread. */
const decodedBytes = 262_144;

/**
 * Decompresses Brotli piece by piece, in order. An empty or cut input is an error.
 * @param refused creates the error for input that is not Brotli; by default ARCHIVE_MALFORMED
 * @returns the pieces, each of at most 262,144 bytes. The generator has no bound on their sum: the caller stops it
 * @throws the WritError from `refused`, and a WritError of the source unchanged; both while it is iterated
 */
export async function* decompress(
  source: AsyncGenerator<Buffer>,
  refused: (what: string, cause: unknown) => WritError = malformed,
): AsyncGenerator<Buffer> {
  const brotli = createBrotliDecompress({ chunkSize: decodedBytes });
  const used = createPieceCollector();
  // An error on either side ends both, and the loop below throws it.
  pipeline(source, brotli, () => undefined);
  try {
    for await (const chunk of brotli) {
      yield chunk as Buffer;
      used(decodedBytes);
    }
  } catch (error) {
    throw isWritError(error) ? error : refused('it is not Brotli, or is cut off', error);
  }
}

/** Closes the file after success and failure. */
async function withReader<T>(
  archive: AsyncGenerator<Buffer>,
  act: (reader: Reader) => Promise<T>,
): Promise<T> {
  const chunks = decompress(archive);
  try {
    return await act(createReader(chunks));
  } finally {
    await chunks.return(undefined);
    await archive.return(undefined);
  }
}

interface Reader {
  /** @returns the next `count` bytes, or fewer at the end of the archive */
  take(count: number): Promise<Buffer>;
}

function createReader(chunks: AsyncGenerator<Buffer>): Reader {
  let rest: Buffer = Buffer.alloc(0);
  return {
    take: async (count) => {
      const parts: Buffer[] = [];
      let missing = count;
      while (missing > 0) {
        if (rest.length === 0) {
          const next = await chunks.next();
          if (next.done === true) break;
          rest = next.value;
        }
        const part = rest.subarray(0, missing);
        parts.push(part);
        rest = rest.subarray(part.length);
        missing -= part.length;
      }
      return Buffer.concat(parts);
    },
  };
}

const chunkBytes = 1_048_576;

/** @param archiveBytes the size of the packed archive; with the allowed ratio it bounds the memory of the manifest */
async function readManifestBytes(
  reader: Reader,
  archiveBytes: number,
  limits: ArchiveLimits,
): Promise<Buffer> {
  const header = await reader.take(512);
  const size = Number.parseInt(header.subarray(124, 136).toString('latin1'), 8);
  if (!Number.isSafeInteger(size)) throw malformed('it has no manifest');
  if (!header.equals(tarHeader(manifestName, size, { executable: false }))) {
    throw malformed('its first entry is not a manifest');
  }
  requireManifestLength(size, archiveBytes, limits);
  const bytes = await reader.take(size);
  await requireZeros(reader, tarPaddingBytes(size));
  return bytes;
}

async function requireFile(reader: Reader, file: ManifestFile): Promise<void> {
  const header = tarHeader(file.path, file.sizeBytes, file);
  if (!(await reader.take(header.length)).equals(header)) {
    throw mismatch(`${file.path} is not the next entry, or its header differs`);
  }
  const digest = createHash('sha256');
  for (let left = file.sizeBytes; left > 0; ) {
    const chunk = await reader.take(Math.min(left, chunkBytes));
    if (chunk.length === 0) throw malformed('it ends too early');
    digest.update(chunk);
    left -= chunk.length;
  }
  if (digest.digest('hex') !== digestHex(file.digest)) throw mismatch(`${file.path} has a different digest`);
  await requireZeros(reader, tarPaddingBytes(file.sizeBytes));
}

async function requireZeros(reader: Reader, count: number): Promise<void> {
  const bytes = await reader.take(count);
  if (bytes.length === count && bytes.every((byte) => byte === 0)) return;
  throw malformed('padding bytes are not zero, or missing');
}

function malformed(what: string, cause?: unknown): WritError {
  return new WritError('ARCHIVE_MALFORMED', `the archive is not a Writ archive: ${what}`, { cause });
}

function mismatch(what: string): WritError {
  return new WritError('MANIFEST_MISMATCH', `files and manifest differ: ${what}`);
}

function tooLarge(expected: number, actual: number): WritError {
  return new WritError('ARCHIVE_LIMIT', 'the archive is too large', { facts: { expected, actual } });
}
