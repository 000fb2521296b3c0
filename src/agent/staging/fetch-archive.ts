// Brings one archive or delta into staging, bounded by its signed length and digested while it streams. The only
// maker of a VerifiedArchive: bytes under the signed digest, flushed. Never looks inside, and leaves nothing behind
// when it fails.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isWritError, toWritError, WritError } from '../../core/errors.js';
import { type ArchiveLimits, maxResumptions } from '../../core/limits.js';
import { digestHex } from '../../core/names.js';
import { requireManifestLength } from '../../core/release/archive-bounds.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import { type Space, spaceForArchive } from '../../core/release/disk-space.js';
import { openTargetDigest, type TargetDigest } from '../../core/tuf/target-digest.js';
import { requireRoom, withNeed } from '../../platform/disk/disk-room.js';
import type { DurableFs, OpenFile } from '../../platform/disk/durable-fs.js';
import type { OpenTransfer } from '../../trust/download.js';
import type { MirrorFailure } from '../../trust/mirrors/mirror-failures.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import { deltaLocation, type SignedTarget } from '../../trust/signed-target.js';
import type { KeptFile } from '../generations/kept-copies.js';

declare const verified: unique symbol;

/** An archive on disk whose every byte is under the signed digest. */
export interface VerifiedArchive {
  readonly path: string;
  readonly target: SignedTarget;
  readonly [verified]: true;
}

export interface FetchOptions {
  readonly client: Pick<RepositoryClient, 'download'>;
  readonly target: SignedTarget;
  /** Inside staging; the archive becomes a new file in it. */
  readonly directory: string;
  readonly fs: DurableFs;
  readonly limits: ArchiveLimits;
  /** Still to be written for what was fetched before, and not to be given away twice. */
  readonly claimedBytes?: number;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  /** Told of each mirror that failed before another one brought the archive. */
  readonly onMirrorFailed?: (failure: MirrorFailure) => void;
  readonly signal?: AbortSignal;
}

const archiveName = 'archive';
const deltaName = 'delta';

/**
 * Fetches, digests and flushes an archive.
 * @throws WritError ARCHIVE_LIMIT or DISK_FULL before a byte is asked for; DOWNLOAD_DIGEST, DOWNLOAD_TRUNCATED,
 *   DOWNLOAD_TOO_LARGE; INTERRUPTED; DISK_*; and what the client throws
 */
export async function fetchArchive(options: FetchOptions): Promise<VerifiedArchive> {
  const { target, limits, claimedBytes = 0 } = options;
  requireLength(target, limits);
  const space = spaceForArchive(target.length + claimedBytes, target.release.manifest.length);
  const path = await fetchSigned(options, { name: archiveName, space });
  return { path, target } as VerifiedArchive;
}

/**
 * Fetches one of the deltas of a release, as an archive is fetched: no tree comes by it that its archive could not bring.
 * @returns the delta, its every byte under the signed digest. @throws WritError as fetchArchive
 */
export async function fetchDelta(options: FetchOptions & { readonly delta: DeltaInfo }): Promise<KeptFile> {
  const { target, delta, limits, claimedBytes = 0 } = options;
  requireLength(target, limits);
  const { length, digest } = delta;
  const { manifest } = target.release;
  // A tree at least as large as its archive, as for an archive; exactly when the manifest is made.
  const bytes = length + target.length + 2 * claimedBytes + manifest.length;
  const { inodes } = spaceForArchive(length, manifest.length);
  const archivePath = deltaLocation(target, delta);
  const file = { length, hashes: { sha256: digestHex(digest) } };
  const asTarget = { ...target, path: archivePath, archivePath, file, length, digest };
  const path = await fetchSigned(
    { ...options, target: asTarget },
    { name: deltaName, space: { bytes, inodes } },
  );
  return { path, length, digest, manifest };
}

/** @returns where it lies */
async function fetchSigned(
  options: FetchOptions,
  { name, space }: { readonly name: string; readonly space: Space },
): Promise<string> {
  const { target, directory, onMirrorFailed } = options;
  const room = { path: directory, what: `${target.release.bundle} ${target.release.serial}`, space };
  requireRoom(room);
  const path = join(directory, name);
  const descriptor = options.fs.openNew('fetch.archive:create', path, { mode: 0o600 });
  try {
    const download: Download = { path, descriptor, durable: options.fs, ...nothingYet(target) };
    const failures = await options.client.download(
      target,
      (open, signal) => receiveVerified({ ...options, download, open, signal }),
      options.signal,
    );
    for (const failure of failures) onMirrorFailed?.(failure);
    options.fs.flushDescriptor('fetch.archive:flush', descriptor, path);
    return path;
  } catch (error) {
    const told = withNeed(error, room);
    options.fs.discardFile('fetch.archive:discard', path);
    throw told;
  } finally {
    fs.closeSync(descriptor);
  }
}

interface Download extends OpenFile {
  readonly durable: DurableFs;
  digest: TargetDigest;
  doneBytes: number;
}

function nothingYet({ path, file }: SignedTarget): Pick<Download, 'digest' | 'doneBytes'> {
  return { doneBytes: 0, digest: openTargetDigest(path, file) };
}

/** One mirror's turn: the archive so far, and the way to the rest of it. */
interface Turn extends Pick<FetchOptions, 'target' | 'onProgress'> {
  readonly download: Download;
  readonly open: OpenTransfer;
  readonly signal: AbortSignal;
}

/**
 * Takes what is missing from one mirror. When the whole has not the signed digest, the bytes of a mirror before
 * may be at fault: then this one is judged by its own bytes alone, or a liar's half would discredit the honest.
 */
async function receiveVerified(turn: Turn): Promise<void> {
  const { download } = turn;
  const inherited = download.doneBytes > 0;
  const wrong = await receiveWhole(turn);
  if (wrong === undefined) return;
  const alone = inherited ? await receiveWhole(turn) : wrong;
  if (alone !== undefined) throw alone;
}

/** @returns undefined when all is there and right; otherwise nothing is kept */
async function receiveWhole(turn: Turn): Promise<WritError | undefined> {
  const { download, target } = turn;
  await receive(turn);
  try {
    download.digest.requireSame();
    return undefined;
  } catch (error) {
    startOver(download, target);
    return toWritError(error);
  }
}

/** Bytes are written at their own place: those of the one before are written over, to the last one. */
function startOver(download: Download, target: SignedTarget): void {
  Object.assign(download, nothingYet(target));
}

/** By signed lengths alone: what is too long is nobody's full disk, and nobody's memory. */
function requireLength(target: SignedTarget, limits: ArchiveLimits): void {
  if (target.length <= limits.maxArchiveBytes) {
    requireManifestLength(target.release.manifest.length, target.length, limits);
    return;
  }
  throw new WritError('ARCHIVE_LIMIT', `${target.path}: the archive is larger than the limit`, {
    facts: { expected: limits.maxArchiveBytes, actual: target.length },
  });
}

/** The digest goes on over a cut: what is there is not fetched or read twice. */
async function receive(turn: Turn): Promise<void> {
  const { download, target, signal } = turn;
  for (let resumptions = 0; download.doneBytes < target.length; resumptions += 1) {
    const problem = await receiveUntilCut(turn);
    if (download.doneBytes === target.length && problem === undefined) return;
    if (signal.aborted) throw new WritError('INTERRUPTED', `${target.path}: the transfer was interrupted`);
    if (resumptions === maxResumptions || !isCut(problem)) throw problem ?? truncated(target, download);
  }
}

/** @returns what ended the stream, undefined when it ended by itself */
async function receiveUntilCut({ download, open, target, signal, onProgress }: Turn): Promise<unknown> {
  try {
    for await (const chunk of open(download.doneBytes, signal)) {
      if (download.doneBytes + chunk.length > target.length) throw tooLarge(target);
      // An empty one only says that the transfer goes on.
      if (chunk.length > 0)
        download.durable.write('fetch.archive:write', download, chunk, download.doneBytes);
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

function truncated(target: SignedTarget, { doneBytes }: Download): WritError {
  return new WritError('DOWNLOAD_TRUNCATED', `${target.path}: it ended before its signed length`, {
    facts: { target: target.path, expected: target.length, actual: doneBytes },
  });
}

function tooLarge(target: SignedTarget): WritError {
  return new WritError('DOWNLOAD_TOO_LARGE', `${target.path}: more bytes than were signed`, {
    facts: { target: target.path, expected: target.length },
  });
}
