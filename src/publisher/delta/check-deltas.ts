// The delta part of `writ repo check`: applies each delta of a listed release to its base, where the archive of the base
// still exists, and compares the result with the digests in the manifest. Reads only the repository; copies are in the
// directory for temporary files.
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ArchiveLimits } from '../../core/limits.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { More } from '../../core/work-report.js';
import { readManifestOf, type StoredRelease } from '../archive/archive-reader.js';
import { pathOf, type RepositoryLayout } from '../repository/repository-layout.js';
import { type DeltaTrial, readSources, requireDeltaResult } from './apply-delta.js';
import { type BaseFiles, openBaseFiles } from './base-files.js';

interface DeltasCheck {
  readonly layout: RepositoryLayout;
  readonly release: ReleaseInfo;
  /** The releases of the bundle, which may be base releases. */
  readonly history: readonly StoredRelease[];
  readonly limits: ArchiveLimits;
  /** Called before each delta; the returned callback receives the numbers of unpacked bytes of its base. */
  readonly begin?: () => More;
}

/**
 * @returns the number of deltas that were not applied, because their base is missing
 * @throws WritError DELTA_MALFORMED, MANIFEST_MALFORMED, ARCHIVE_LIMIT, DISK_*
 */
export async function checkDeltas(check: DeltasCheck): Promise<number> {
  const path = join(tmpdir(), `writ-check-${randomBytes(6).toString('hex')}`);
  const files = openBaseFiles(path, check);
  let untried = 0;
  try {
    for (const delta of check.release.deltas ?? []) {
      if ((await tryDelta(check, delta, files)) === 'no base') untried += 1;
    }
  } finally {
    files.close();
  }
  return untried;
}

async function tryDelta(
  { layout, release, history, limits, begin }: DeltasCheck,
  { from, digest, length }: DeltaInfo,
  files: BaseFiles,
): Promise<'whole' | 'no base'> {
  const more = begin?.();
  const { bundle, channel, manifest } = release;
  const stored = history.find((one) => one.release.manifest.digest === from);
  const read = stored && (await readManifestOf(layout, stored, limits));
  if (stored === undefined || read === undefined) return 'no base';
  const path = join(layout.targets, pathOf({ kind: 'delta', bundle, channel, digest }));
  const trial: Omit<DeltaTrial, 'source'> = { path, deltaBytes: length, base: read, manifest, limits };
  if (!(await files.add({ ...stored, read }, await readSources(trial), more))) return 'no base';
  await requireDeltaResult({ ...trial, source: files.source });
  return 'whole';
}
