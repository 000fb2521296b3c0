// Unpacks a verified archive into staging. The manifest is the first entry and must match the signed digest before a file is
// written. After it, each entry must be the next file of the manifest, byte for byte.
import type { ArchiveLimits } from '../../core/limits.js';
import { createTarReader } from '../../core/release/tar-reader.js';
import { decompressFile } from './decompress.js';
import type { VerifiedArchive } from './fetch-archive.js';
import { createStagedBundle, type StagedBundle, type StagedTreeOptions } from './staged-bundle.js';
import { createBundleVisitor } from './verify-entries.js';

export interface StageBundleOptions extends StagedTreeOptions {
  readonly archive: VerifiedArchive;
  readonly limits: ArchiveLimits;
}

/** Bytes in a PAX header for a size and a time, in addition to the path. */
const paxOverhead = 512;

/**
 * Unpacks an archive, and verifies each file against the manifest and the manifest against the signed digest.
 * @throws WritError ARCHIVE_MALFORMED, ENTRY_REFUSED, ARCHIVE_LIMIT, MANIFEST_DIGEST, MANIFEST_MALFORMED,
 *   MANIFEST_MISMATCH, also for wrong stamps; INTERRUPTED; DISK_*
 */
export async function stageBundle(options: StageBundleOptions): Promise<StagedBundle> {
  const { archive, limits, signal } = options;
  const { path, target } = archive;
  const { length, digest, release } = target;
  const file = { path, length, digest, manifest: release.manifest };
  const copy = { target: target.path, archive: file, deltas: [] };
  return createStagedBundle({ ...options, target, copy, fetchedBytes: length }, async (tree) => {
    const visitor = createBundleVisitor({ release, archiveBytes: length, limits, tree });
    const reader = createTarReader(visitor, { maxPaxBytes: limits.maxPathBytes + paxOverhead });
    const packed = { path, length, target: target.path, what: 'archive', signal } as const;
    await decompressFile(packed, (chunk) => {
      reader.write(chunk);
      return undefined;
    });
    reader.finish();
    return visitor.finish();
  });
}
