// Unpacks a verified archive into the jail. The manifest comes first and is held against the signed digest
// before any file is written; from then on it is the allow-list: each entry must be its next file, to the byte.
// The only maker of a StagedBundle. Whatever goes wrong, the tree is removed.
import * as fs from 'node:fs';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type BrotliDecompress, createBrotliDecompress, createGunzip, type Gunzip } from 'node:zlib';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import type { Manifest } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { createTarReader, type TarReader } from '../../core/release/tar-reader.js';
import { type DurableFs, diskError } from '../../platform/disk/durable-fs.js';
import { createPieceCollector } from '../../platform/process/heap.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { VerifiedArchive } from './fetch-archive.js';
import { proveStamps } from './prove-stamps.js';
import { createTreeWriter, type TreeOptions } from './stage-tree.js';
import { createBundleVisitor, type ProvenManifest } from './verify-entries.js';

declare const staged: unique symbol;

/** A tree in staging that is, file by file, what the signed manifest says. Not yet flushed. */
export interface StagedBundle {
  readonly bundle: string;
  readonly release: ReleaseInfo;
  readonly treePath: string;
  readonly manifest: Manifest;
  readonly stamped: ReleaseInfo['stamped'];
  readonly manifestBytes: Buffer;
  readonly archivePath: string;
  readonly target: SignedTarget;
  readonly [staged]: true;
}

export interface StageOptions {
  readonly archive: VerifiedArchive;
  /** The tree itself: a path in staging where nothing is yet. */
  readonly directory: string;
  readonly fs: DurableFs;
  readonly limits: ArchiveLimits;
  /** Mode of plain files, as 0644; directories and executables are derived from it. */
  readonly mode: number;
  readonly groupId?: number;
  /** Modification time of every file, epoch seconds. */
  readonly mtimeSeconds: number;
  readonly signal?: AbortSignal;
}

/**
 * Unpacks, checks every file against the manifest and the manifest against the signed digest.
 * @throws WritError ARCHIVE_MALFORMED, ENTRY_REFUSED, ARCHIVE_LIMIT, MANIFEST_DIGEST, MANIFEST_MALFORMED,
 *   MANIFEST_MISMATCH, also for stamps that are not true; INTERRUPTED; DISK_*
 */
export async function stageBundle(options: StageOptions): Promise<StagedBundle> {
  const { archive, directory, limits } = options;
  const { release } = archive.target;
  const tree = createTreeWriter({
    ...options,
    treePath: directory,
    what: `${release.bundle} ${release.serial}`,
    beside: spaceBeside(archive.target),
  });
  try {
    const visitor = createBundleVisitor({ release, archiveBytes: archive.target.length, limits, tree });
    await readArchive(options, createTarReader(visitor, { maxPaxBytes: limits.maxPathBytes + paxOverhead }));
    const proven = visitor.finish();
    proveStamps(release, proven.manifest, directory);
    return stagedBundle(options, proven);
  } catch (error) {
    const told = stageError(tree.explain(error), options);
    tree.abandon();
    discard(options);
    throw told;
  }
}

/** The archive is there already; the manifest and what vouches for it are kept with it. */
function spaceBeside({ length, release, vouchedBy }: SignedTarget): TreeOptions['beside'] {
  const vouchers = vouchedBy.chain.reduce((sum, { bytes }) => sum + bytes.length, 0);
  return {
    written: { bytes: length, inodes: 0 },
    toCome: { bytes: length + release.manifest.length + vouchers, inodes: 0 },
  };
}

/** Room in a PAX header for a size and a time beside the path. */
const paxOverhead = 512;
/** Smaller pieces are more hops between threads, greater ones wait longer for the collector (docs/performance.md). */
const chunkBytes = 64 * 1024;

/** The decoder works on its own thread and hands over piece by piece: between pieces the event loop is free. */
async function readArchive({ archive, signal }: StageOptions, reader: TarReader): Promise<void> {
  const input = fs.createReadStream(archive.path, { highWaterMark: chunkBytes });
  const decoder = createDecoder(archive.target);
  const used = createPieceCollector();
  let refusal: unknown;
  const sink = new Writable({
    highWaterMark: 1,
    write: (chunk: Buffer, _encoding, done) => {
      try {
        reader.write(chunk);
        used(chunk.length);
      } catch (error) {
        refusal = error;
        return done(error as Error);
      }
      done();
    },
  });
  await pipeline(input, decoder, sink, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    // The pipeline reports the abort of its decoder in place of the refusal that caused it.
    throw refusal ?? error;
  });
  reader.finish();
  // Decoders stop at the end of their stream, and say nothing of what lies behind it.
  if (decoder.bytesWritten !== archive.target.length) {
    throw new WritError('ARCHIVE_MALFORMED', 'the archive has data behind its compressed stream', {
      facts: { expected: decoder.bytesWritten, actual: archive.target.length },
    });
  }
}

function createDecoder(target: SignedTarget): BrotliDecompress | Gunzip {
  return target.path.endsWith('.gz')
    ? createGunzip({ chunkSize: chunkBytes })
    : createBrotliDecompress({ chunkSize: chunkBytes });
}

function stagedBundle({ archive, directory }: StageOptions, proven: ProvenManifest): StagedBundle {
  const { target } = archive;
  return {
    bundle: target.release.bundle,
    release: target.release,
    treePath: directory,
    manifest: proven.manifest,
    stamped: target.release.stamped,
    manifestBytes: proven.bytes,
    archivePath: archive.path,
    target,
  } as StagedBundle;
}

/** What made staging fail is the news, not that its rest could not be removed: the cycle removes its jail. */
function discard({ fs: durableFs, directory }: StageOptions): void {
  try {
    durableFs.removeTree('stage.discard', directory);
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
}

function stageError(error: unknown, { archive, signal }: StageOptions): unknown {
  const { path } = archive.target;
  if (isWritError(error) || !isSystemError(error)) return error;
  if (signal?.aborted)
    return new WritError('INTERRUPTED', `${path}: staging was interrupted`, { cause: error });
  if (error.syscall !== undefined) {
    return diskError(error, { op: 'stage.tree', path: error.path ?? archive.path });
  }
  const code = error.code ?? '';
  if (!decoderErrors.test(code) && !endedEarly.test(code)) return error;
  const why = endedEarly.test(code) ? 'data lies behind its compressed stream' : error.message;
  return new WritError('ARCHIVE_MALFORMED', `the archive cannot be decompressed: ${why}`, {
    facts: { target: path },
    cause: error,
  });
}

/** zlib and Brotli have codes of their own. */
const decoderErrors = /^(Z_|ERR__)/;
/** A decoder that ends before its input, as it looks from outside. */
const endedEarly = /^(ABORT_ERR|ERR_STREAM_PREMATURE_CLOSE)$/;
