// Brings one archive or delta into staging: room first, then its bytes, bounded by the signed length and digested while they stream.
// The only maker of a VerifiedArchive: bytes under the signed digest, flushed. Never looks inside, and leaves nothing in staging
// when it fails; what was cut stays among the partials.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { digestHex } from '../../core/names.js';
import { requireManifestLength } from '../../core/release/archive-bounds.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import { type Space, spaceForArchive } from '../../core/release/disk-space.js';
import { sizeText } from '../../core/size-text.js';
import { type RoomOptions, requireRoom, withNeed } from '../../platform/disk/disk-room.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Receive } from '../../trust/download.js';
import type { MirrorFailure } from '../../trust/mirrors/mirror-failures.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import { deltaLocation, type SignedTarget } from '../../trust/signed-target.js';
import type { KeptFile } from '../generations/kept-copies.js';
import { dropPartials, openPartial, type Partial, type PartialsHost } from '../partials/partials.js';
import { beginDownload, type Download, receiveVerified } from './receive-target.js';

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
  /** Where a cut transfer is kept for the next run; left out for what is on this host, or fetched for one look. */
  readonly partials?: PartialsHost;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  /** Told from where on bytes are received, where some were here; 0 when those turned out to be of no use. */
  readonly onResume?: (fromByte: number) => void;
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
  const { target, directory, client, fs: durable, onMirrorFailed, signal } = options;
  const path = join(directory, name);
  const room = { path: directory, what: `${target.release.bundle} ${target.release.serial}`, space };
  const file = openReceived(options, path);
  let download: Download | undefined;
  try {
    requireRoomFor(options, { ...room, written: { bytes: file.foundBytes, inodes: 0 } });
    download = await beginDownload({ ...options, file, durable }, signal);
    if (download.wasWhole === 'no') {
      const failures = await client.download(target, receiveInto(download), signal);
      for (const failure of failures) onMirrorFailed?.(failure);
    }
    durable.flushDescriptor('fetch.archive:flush', file.descriptor, file.path);
    file.take(path);
    return path;
  } catch (error) {
    const told = withNeed(error, room);
    const received = download ?? { doneBytes: file.foundBytes };
    if (!isWorthKeeping(told, received)) {
      file.discard();
      throw told;
    }
    file.keep();
    throw options.partials === undefined ? told : withKept(told, received, target);
  } finally {
    fs.closeSync(file.descriptor);
  }
}

/** What comes of this host itself, or for nobody's next run, lies where it is wanted from the start. */
function openReceived({ partials, target, fs: durable }: FetchOptions, path: string): Partial {
  if (partials !== undefined) return openPartial(partials, target);
  const discard = (): void => durable.discardFile('fetch.archive:discard', path);
  const nothing = (): void => undefined;
  const descriptor = durable.openNew('fetch.archive:create', path, { mode: 0o600 });
  return {
    path,
    descriptor,
    foundBytes: 0,
    seen: undefined,
    note: nothing,
    take: nothing,
    keep: discard,
    discard,
  };
}

function receiveInto(download: Download): Receive {
  return (open, signal, others) => receiveVerified({ download, open, signal, others });
}

/** What else was begun gives way to what is wanted now. */
function requireRoomFor({ partials, target }: FetchOptions, room: RoomOptions): void {
  try {
    requireRoom(room);
  } catch (error) {
    if (partials === undefined || !isWritError(error) || error.code !== 'DISK_FULL') throw error;
    dropPartials(partials, [target.digest]);
    requireRoom(room);
  }
}

/** Of a disk that refused nobody knows what it holds; and a full one gets its room back. */
function isWorthKeeping(error: unknown, { doneBytes }: Pick<Download, 'doneBytes'>): boolean {
  return doneBytes > 0 && isWritError(error) && !error.code.startsWith('DISK_');
}

/** Who has ended it wants to know what that costs. */
function withKept(error: unknown, { doneBytes }: Pick<Download, 'doneBytes'>, target: SignedTarget): unknown {
  if (!isWritError(error) || error.code !== 'INTERRUPTED') return error;
  const kept = `${sizeText(doneBytes)} of ${sizeText(target.length)} kept`;
  return new WritError('INTERRUPTED', `${error.message}: ${kept}; the next pull continues from there`, {
    facts: { ...error.facts, keptBytes: doneBytes, totalBytes: target.length },
    cause: error,
  });
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
