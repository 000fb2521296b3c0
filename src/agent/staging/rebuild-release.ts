// Rebuilds a release from its retained copy: the archive of an older release, and then each delta. Each tree is verified against the
// digest of its manifest. Sends no request. Only the last tree stays.
import { join } from 'node:path';
import { given } from '../../core/given.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { digestHex } from '../../core/names.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { KeptCopy, KeptFile } from '../generations/kept-copies.js';
import { fetchArchive, fetchDelta } from './fetch-archive.js';
import { createFileClient } from './retained-archives.js';
import { stageBundle } from './stage-bundle.js';
import { stageDelta } from './stage-delta.js';
import type { StagedBundle, StagedTreeOptions } from './staged-bundle.js';

export interface RebuildReleaseOptions extends StagedTreeOptions {
  readonly target: SignedTarget;
  readonly copy: KeptCopy;
  readonly limits: ArchiveLimits;
  /** A new directory in staging for the intermediate trees. */
  readonly scratch: string;
}

/**
 * Rebuilds a release from its retained archive and deltas. Sends no request. Writes below `scratch` and `directory`.
 * @returns the staged bundle of the last delta in `directory`; without deltas that of the archive, in `tree-0` of `scratch`
 * @throws WritError for a damaged retained file: ARCHIVE_*, DELTA_*, DOWNLOAD_*, ENTRY_REFUSED, MANIFEST_*
 * @throws WritError INTERRUPTED; DISK_*, also if a retained file is missing or cannot be read. Trees may stay in `scratch` then
 */
export async function rebuildRelease(options: RebuildReleaseOptions): Promise<StagedBundle> {
  const { copy, limits, fs, scratch, signal, target } = options;
  const inScratch = (name: string): string => join(scratch, name);
  const reading = { fs, limits, ...given({ signal }) };
  const archive = await fetchArchive({
    ...reading,
    client: createFileClient(copy.archive.path),
    target: createArchiveTarget(target, copy),
    directory: scratch,
  });
  let current = await stageBundle({ ...options, archive, directory: inScratch('tree-0') });
  for (const [index, retained] of copy.deltas.entries()) {
    const isLast = index === copy.deltas.length - 1;
    const from = current.release.manifest.digest;
    const delta = await fetchDelta({
      ...reading,
      client: createFileClient(retained.path),
      target: isLast ? target : createIntermediateTarget(target, retained),
      delta: { from, length: retained.length, digest: retained.digest },
      directory: scratch,
    });
    const next = await stageDelta({
      ...options,
      target: isLast ? target : createIntermediateTarget(target, retained),
      base: current,
      delta,
      directory: isLast ? options.directory : inScratch(`tree-${index + 1}`),
    });
    fs.discardFile('stage.kept', delta.path);
    fs.removeTree('stage.kept-tree', current.treePath);
    current = next;
  }
  return current;
}

/** An intermediate release needs no provenance, because the last release has a signed digest. */
function createIntermediateTarget(target: SignedTarget, { manifest }: KeptFile): SignedTarget {
  const { stamped: _, ...release } = target.release;
  return { ...target, release: { ...release, manifest } };
}

function createArchiveTarget(target: SignedTarget, { archive, target: path }: KeptCopy): SignedTarget {
  const { length, digest } = archive;
  const file = { length, hashes: { sha256: digestHex(digest) } };
  return { ...createIntermediateTarget(target, archive), path, file, length, digest };
}
