// The bounds on the unpacked size of an archive. They apply to signed or measured sizes, before anything is fetched, allocated or
// parsed. The caller that counts files limits their number. Pure.
import { WritError } from '../errors.js';
import type { ArchiveLimits } from '../limits.js';

/**
 * Up to this size the ratio is not limited, because lines of zeros shrink a thousandfold and a small tree is no decompression bomb.
 */
const ratioFreeBytes = 1_000_000;

/** @throws WritError ARCHIVE_LIMIT if the ratio permits fewer bytes */
export function requireRatio(unpackedBytes: number, archiveBytes: number, limits: ArchiveLimits): void {
  const maxBytes = Math.max(ratioFreeBytes, archiveBytes * limits.maxRatio);
  if (unpackedBytes > maxBytes) throw tooLarge('the archive unpacks to too much', maxBytes, unpackedBytes);
}

/** @throws WritError ARCHIVE_LIMIT if the manifest is too long for an archive of this length */
export function requireManifestLength(
  manifestBytes: number,
  archiveBytes: number,
  limits: ArchiveLimits,
): void {
  requireManifestBytes(manifestBytes, limits);
  requireRatio(manifestBytes, archiveBytes, limits);
}

/** @throws WritError ARCHIVE_LIMIT if the manifest is too long for any archive */
export function requireManifestBytes(manifestBytes: number, { maxManifestBytes }: ArchiveLimits): void {
  if (manifestBytes > maxManifestBytes) {
    throw tooLarge('the manifest is too large', maxManifestBytes, manifestBytes);
  }
}

function tooLarge(what: string, expected: number, actual: number): WritError {
  return new WritError('ARCHIVE_LIMIT', what, { facts: { expected, actual } });
}
