// Unpacks a verified archive into the jail. The manifest comes first and is held against the signed digest
// before any file is written; from then on it is the allow-list: each entry must be its next file, to the byte.
import type { ArchiveLimits } from '../../core/limits.js';
import { createTarReader } from '../../core/release/tar-reader.js';
import { decompress } from './decompress.js';
import type { VerifiedArchive } from './fetch-archive.js';
import { makeStagedBundle, type StagedBundle, type TreePlace } from './staged-bundle.js';
import { createBundleVisitor } from './verify-entries.js';

export interface StageOptions extends TreePlace {
  readonly archive: VerifiedArchive;
  readonly limits: ArchiveLimits;
}

/** Room in a PAX header for a size and a time beside the path. */
const paxOverhead = 512;

/**
 * Unpacks, checks every file against the manifest and the manifest against the signed digest.
 * @throws WritError ARCHIVE_MALFORMED, ENTRY_REFUSED, ARCHIVE_LIMIT, MANIFEST_DIGEST, MANIFEST_MALFORMED,
 *   MANIFEST_MISMATCH, also for stamps that are not true; INTERRUPTED; DISK_*
 */
export async function stageBundle(options: StageOptions): Promise<StagedBundle> {
  const { archive, limits, signal } = options;
  const { path, target } = archive;
  const { length, digest, release } = target;
  const file = { path, length, digest, manifest: release.manifest };
  const copy = { target: target.path, archive: file, deltas: [] };
  return makeStagedBundle({ ...options, target, copy, fetchedBytes: length }, async (tree) => {
    const visitor = createBundleVisitor({ release, archiveBytes: length, limits, tree });
    const reader = createTarReader(visitor, { maxPaxBytes: limits.maxPathBytes + paxOverhead });
    const packed = { path, length, target: target.path, what: 'archive', signal } as const;
    await decompress(packed, (chunk) => {
      reader.write(chunk);
      return undefined;
    });
    reader.finish();
    return visitor.finish();
  });
}
