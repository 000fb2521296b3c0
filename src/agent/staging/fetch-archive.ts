// Fetches one archive or delta into staging: requires free space first, then receives at most the signed length and verifies the
// digest. The only function that creates a VerifiedArchive: bytes that match the signed digest, flushed. It never parses them. A
// failure leaves no file in staging; a partial download is retained for the next run.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { digestHex } from '../../core/names.js';
import { requireManifestLength } from '../../core/release/archive-bounds.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import { type Space, spaceForArchive } from '../../core/release/disk-space.js';
import { sizeText } from '../../core/size-text.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import {
  requireFreeSpace,
  type SpaceRequirement,
  withRequiredSpace,
} from '../../platform/disk/free-space.js';
import type { Receive } from '../../trust/download.js';
import type { MirrorFailure } from '../../trust/mirrors/mirror-failures.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import { deltaLocation, type SignedTarget } from '../../trust/signed-target.js';
import type { KeptFile } from '../generations/kept-copies.js';
import { dropPartials, openPartial, type Partial, type PartialsHost } from '../partials/partials.js';
import { beginDownload, receiveVerified, type TargetDownload } from './receive-target.js';

declare const verified: unique symbol;

/** An archive on disk that matches its signed digest. */
export interface VerifiedArchive {
  readonly path: string;
  readonly target: SignedTarget;
  readonly [verified]: true;
}

export interface ArchiveFetchOptions {
  readonly client: Pick<RepositoryClient, 'download'>;
  readonly target: SignedTarget;
  /** Directory in staging for the new file. */
  readonly directory: string;
  readonly fs: DurableFs;
  readonly limits: ArchiveLimits;
  /** Bytes that the trees of earlier fetches still need, so that the same space is not used twice. */
  readonly claimedBytes?: number;
  /** Where a partial download is retained; left out for a file of this host, or for a single use. */
  readonly partials?: PartialsHost;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  /** Called with the offset at which a partial download continues; 0 if it was useless. */
  readonly onResume?: (fromByte: number) => void;
  /** Called for each mirror that failed before another mirror sent the archive. */
  readonly onMirrorFailed?: (failure: MirrorFailure) => void;
  readonly signal?: AbortSignal;
}

const archiveName = 'archive';
const deltaName = 'delta';

/**
 * Fetches, digests and flushes an archive.
 * @throws WritError ARCHIVE_LIMIT or DISK_FULL before the first request; DOWNLOAD_DIGEST, DOWNLOAD_TRUNCATED,
 *   DOWNLOAD_TOO_LARGE; INTERRUPTED; DISK_*; and what the client throws
 */
export async function fetchArchive(options: ArchiveFetchOptions): Promise<VerifiedArchive> {
  const { target, limits, claimedBytes = 0 } = options;
  requireLengths(target, limits);
  const space = spaceForArchive(target.length + claimedBytes, target.release.manifest.length);
  const path = await fetchSignedFile(options, { name: archiveName, space });
  return { path, target } as VerifiedArchive;
}

/**
 * Fetches one delta of a release, with the limits of its archive, so that a delta makes no tree that the archive could not make.
 * @returns the delta, which matches its signed digest. @throws WritError as fetchArchive
 */
export async function fetchDelta(
  options: ArchiveFetchOptions & { readonly delta: DeltaInfo },
): Promise<KeptFile> {
  const { target, delta, limits, claimedBytes = 0 } = options;
  requireLengths(target, limits);
  const { length, digest } = delta;
  const { manifest } = target.release;
  // The tree is at least as large as the archive; its exact size is known from the manifest.
  const bytes = length + target.length + 2 * claimedBytes + manifest.length;
  const { inodes } = spaceForArchive(length, manifest.length);
  const archivePath = deltaLocation(target, delta);
  const file = { length, hashes: { sha256: digestHex(digest) } };
  const deltaTarget = { ...target, path: archivePath, archivePath, file, length, digest };
  const path = await fetchSignedFile(
    { ...options, target: deltaTarget },
    { name: deltaName, space: { bytes, inodes } },
  );
  return { path, length, digest, manifest };
}

/** @returns the path of the new file */
async function fetchSignedFile(
  options: ArchiveFetchOptions,
  { name, space }: { readonly name: string; readonly space: Space },
): Promise<string> {
  const { target, directory, client, fs: durable, onMirrorFailed, signal } = options;
  const path = join(directory, name);
  const need = { path: directory, what: `${target.release.bundle} ${target.release.serial}`, space };
  const file = openDestination(options, path);
  let download: TargetDownload | undefined;
  try {
    requireSpaceFor(options, { ...need, written: { bytes: file.foundBytes, inodes: 0 } });
    download = await beginDownload({ ...options, file, durable }, signal);
    if (!download.isComplete) {
      const failures = await client.download(target, createReceiver(download), signal);
      for (const failure of failures) onMirrorFailed?.(failure);
    }
    durable.flushDescriptor('fetch.archive:flush', file.descriptor, file.path);
    file.take(path);
    return path;
  } catch (error) {
    const failure = withRequiredSpace(error, need);
    const received = download ?? { doneBytes: file.foundBytes };
    if (!canContinueLater(failure, received)) {
      file.discard();
      throw failure;
    }
    file.keep();
    throw options.partials === undefined ? failure : withRetainedBytes(failure, received, target);
  } finally {
    fs.closeSync(file.descriptor);
  }
}

/** Opens the partial download or, if no run will continue it, a new file at its final path. */
function openDestination({ partials, target, fs: durable }: ArchiveFetchOptions, path: string): Partial {
  if (partials !== undefined) return openPartial(partials, target);
  const discard = (): void => durable.discardFile('fetch.archive:discard', path);
  const doNothing = (): void => undefined;
  const descriptor = durable.openNew('fetch.archive:create', path, { mode: 0o600 });
  return {
    path,
    descriptor,
    foundBytes: 0,
    seen: undefined,
    note: doNothing,
    take: doNothing,
    keep: discard,
    discard,
  };
}

function createReceiver(download: TargetDownload): Receive {
  return (open, signal, others) =>
    receiveVerified({ download, open, signal, hasOtherMirrors: others === 'yes' });
}

/** Removes the partial downloads of other releases if their space is needed. */
function requireSpaceFor({ partials, target }: ArchiveFetchOptions, need: SpaceRequirement): void {
  try {
    requireFreeSpace(need);
  } catch (error) {
    if (partials === undefined || !isWritError(error) || error.code !== 'DISK_FULL') throw error;
    dropPartials(partials, [target.digest]);
    requireFreeSpace(need);
  }
}

/** False after an error of the disk, because the written bytes are unknown and a full disk needs the space. */
function canContinueLater(error: unknown, { doneBytes }: Pick<TargetDownload, 'doneBytes'>): boolean {
  return doneBytes > 0 && isWritError(error) && !error.code.startsWith('DISK_');
}

/** Adds the retained bytes to an interruption, because the operator who caused it needs to know its cost. */
function withRetainedBytes(
  error: unknown,
  { doneBytes }: Pick<TargetDownload, 'doneBytes'>,
  target: SignedTarget,
): unknown {
  if (!isWritError(error) || error.code !== 'INTERRUPTED') return error;
  const kept = `${sizeText(doneBytes)} of ${sizeText(target.length)} kept`;
  return new WritError('INTERRUPTED', `${error.message}: ${kept}; the next pull continues from there`, {
    facts: { ...error.facts, keptBytes: doneBytes, totalBytes: target.length },
    cause: error,
  });
}

/** Compares the signed lengths first, so that a too large release is not reported as a full disk. */
function requireLengths(target: SignedTarget, limits: ArchiveLimits): void {
  if (target.length <= limits.maxArchiveBytes) {
    requireManifestLength(target.release.manifest.length, target.length, limits);
    return;
  }
  throw new WritError('ARCHIVE_LIMIT', `${target.path}: the archive is larger than the limit`, {
    facts: { expected: limits.maxArchiveBytes, actual: target.length },
  });
}
