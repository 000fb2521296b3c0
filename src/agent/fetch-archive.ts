// Brings one archive into staging, bounded by its signed length and digested while it streams. The only maker
// of a VerifiedArchive: bytes under the signed digest, flushed. Never looks inside, and leaves nothing behind
// when it fails.
import { createHash, type Hash } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { isWritError, WritError } from '../core/errors.js';
import type { ArchiveLimits } from '../core/limits.js';
import { digestHex } from '../core/names.js';
import { type DurableFs, diskError } from '../platform/durable-fs.js';
import type { RepositoryClient } from '../trust/repository-client.js';
import type { SignedTarget } from '../trust/signed-target.js';

declare const verified: unique symbol;

/** An archive on disk whose every byte is under the signed digest. */
export interface VerifiedArchive {
  readonly path: string;
  readonly target: SignedTarget;
  readonly [verified]: true;
}

export interface FetchOptions {
  readonly client: Pick<RepositoryClient, 'streamTarget'>;
  readonly target: SignedTarget;
  /** Inside staging; the archive becomes a new file in it. */
  readonly directory: string;
  readonly fs: DurableFs;
  readonly limits: ArchiveLimits;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
}

const archiveName = 'archive';
/** How often a cut transfer goes on from where it stopped. */
const maxResumptions = 3;
/** Left free beside the archive, for the ledger, the journal and the log. */
const reserveBytes = 16_000_000;

/**
 * Fetches, digests and flushes an archive.
 * @throws WritError ARCHIVE_LIMIT or DISK_FULL before a byte is asked for; DOWNLOAD_DIGEST, DOWNLOAD_TRUNCATED,
 *   DOWNLOAD_TOO_LARGE; INTERRUPTED; DISK_*; and what the client throws
 */
export async function fetchArchive(options: FetchOptions): Promise<VerifiedArchive> {
  const { target, directory, limits } = options;
  requireLength(target, limits);
  requireSpace(directory, target.length);
  const path = join(directory, archiveName);
  const descriptor = disk(path, () => fs.openSync(path, exclusive, 0o600));
  try {
    const download = { path, descriptor, doneBytes: 0, digest: createHash('sha256') };
    await receive(download, options);
    requireDigest(target, download.digest);
    options.fs.flushDescriptor('fetch.archive', descriptor, path);
    return { path, target } as VerifiedArchive;
  } catch (error) {
    fs.rmSync(path, { force: true });
    throw error;
  } finally {
    fs.closeSync(descriptor);
  }
}

const exclusive =
  fs.constants.O_CREAT | fs.constants.O_EXCL | fs.constants.O_WRONLY | fs.constants.O_NOFOLLOW;

interface Download {
  readonly path: string;
  readonly descriptor: number;
  readonly digest: Hash;
  doneBytes: number;
}

function requireLength(target: SignedTarget, limits: ArchiveLimits): void {
  if (target.length <= limits.maxArchiveBytes) return;
  throw new WritError('ARCHIVE_LIMIT', `${target.path}: the archive is larger than the limit`, {
    facts: { expected: limits.maxArchiveBytes, actual: target.length },
  });
}

function requireSpace(directory: string, neededBytes: number): void {
  const { bavail, bsize } = disk(directory, () => fs.statfsSync(directory));
  const freeBytes = bavail * bsize;
  if (freeBytes >= neededBytes + reserveBytes) return;
  throw new WritError('DISK_FULL', `${dirname(directory)}: not enough space for the archive`, {
    facts: { path: directory, expected: neededBytes + reserveBytes, actual: freeBytes },
  });
}

/** The digest goes on over a cut: what is there is not fetched or read twice. */
async function receive(download: Download, options: FetchOptions): Promise<void> {
  const { length, path } = options.target;
  for (let resumptions = 0; download.doneBytes < length; resumptions += 1) {
    const problem = await receiveUntilCut(download, options);
    if (download.doneBytes === length && problem === undefined) return;
    if (options.signal?.aborted) throw new WritError('INTERRUPTED', `${path}: the transfer was interrupted`);
    if (resumptions === maxResumptions || !isCut(problem)) throw problem ?? truncated(options, download);
  }
}

/** @returns what ended the stream, undefined when it ended by itself */
async function receiveUntilCut(download: Download, options: FetchOptions): Promise<unknown> {
  const { client, target, signal, onProgress } = options;
  const range = { offset: download.doneBytes, ...(signal === undefined ? {} : { signal }) };
  try {
    for await (const chunk of client.streamTarget(target, range)) {
      if (download.doneBytes + chunk.length > target.length) throw tooLarge(target);
      writeAll(download, chunk);
      download.digest.update(chunk);
      download.doneBytes += chunk.length;
      onProgress?.(download.doneBytes, target.length);
    }
    return undefined;
  } catch (error) {
    return error;
  }
}

const cutCodes: ReadonlySet<string> = new Set([
  'SERVER_UNREACHABLE',
  'SERVER_ERROR',
  'DOWNLOAD_TRUNCATED',
  'DOWNLOAD_TIMEOUT',
]);

/** Only what the way here did is worth another try: a full disk or a body too long would end the same way. */
function isCut(problem: unknown): boolean {
  return problem === undefined || (isWritError(problem) && cutCodes.has(problem.code));
}

function writeAll({ descriptor, path }: Download, chunk: Buffer): void {
  disk(path, () => {
    for (let written = 0; written < chunk.length; ) written += fs.writeSync(descriptor, chunk, written);
  });
}

function requireDigest(target: SignedTarget, digest: Hash): void {
  const actual = digest.digest('hex');
  if (actual === digestHex(target.digest)) return;
  throw new WritError('DOWNLOAD_DIGEST', `${target.path}: the archive has not the signed digest`, {
    facts: { target: target.path, expected: target.digest, actual: `sha256:${actual}` },
  });
}

function truncated({ target }: FetchOptions, { doneBytes }: Download): WritError {
  return new WritError('DOWNLOAD_TRUNCATED', `${target.path}: the archive ended before its signed length`, {
    facts: { target: target.path, expected: target.length, actual: doneBytes },
  });
}

function tooLarge(target: SignedTarget): WritError {
  return new WritError('DOWNLOAD_TOO_LARGE', `${target.path}: more bytes than were signed`, {
    facts: { target: target.path, expected: target.length },
  });
}

function disk<Result>(path: string, act: () => Result): Result {
  try {
    return act();
  } catch (error) {
    throw diskError(error, { op: 'fetch.archive', path });
  }
}
