// What an archive may make of its bytes, by sizes that are signed or on disk: asked before anything is fetched, taken from
// memory or parsed. Pure. How many files there may be is asked where they are counted.
import { WritError } from '../errors.js';
import type { ArchiveLimits } from '../limits.js';

/** A tree this small is no bomb whatever it was packed into: a few lines of zeros shrink a thousandfold. */
const ratioFreeBytes = 1_000_000;

/** @throws WritError ARCHIVE_LIMIT for more bytes than the ratio permits */
export function requireRatio(unpackedBytes: number, archiveBytes: number, limits: ArchiveLimits): void {
  const maxBytes = Math.max(ratioFreeBytes, archiveBytes * limits.maxRatio);
  if (unpackedBytes > maxBytes) throw tooLarge('the archive unpacks to too much', maxBytes, unpackedBytes);
}

/** @throws WritError ARCHIVE_LIMIT for a manifest that no archive of this length may have */
export function requireManifestLength(
  manifestBytes: number,
  archiveBytes: number,
  limits: ArchiveLimits,
): void {
  requireManifestBytes(manifestBytes, limits);
  requireRatio(manifestBytes, archiveBytes, limits);
}

/** @throws WritError ARCHIVE_LIMIT for a manifest that no archive may have, however long that is */
export function requireManifestBytes(manifestBytes: number, { maxManifestBytes }: ArchiveLimits): void {
  if (manifestBytes > maxManifestBytes) {
    throw tooLarge('the manifest is too large', maxManifestBytes, manifestBytes);
  }
}

function tooLarge(what: string, expected: number, actual: number): WritError {
  return new WritError('ARCHIVE_LIMIT', what, { facts: { expected, actual } });
}
