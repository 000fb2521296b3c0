// Makes a release again from what is kept of it where that is no archive of its own: the archive of a release before it, then one
// delta after the other, each tree of it proven by its manifest's digest. Asks no network. The last tree alone stays.
import { join } from 'node:path';
import { given } from '../../core/given.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { digestHex } from '../../core/names.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { KeptCopy, KeptFile } from '../generations/kept-copies.js';
import { fetchArchive, fetchDelta } from './fetch-archive.js';
import { fromKept } from './kept-archives.js';
import { stageBundle } from './stage-bundle.js';
import { stageByDifference } from './stage-by-difference.js';
import type { StagedBundle, TreePlace } from './staged-bundle.js';

export interface RebuildOptions extends TreePlace {
  readonly target: SignedTarget;
  readonly copy: KeptCopy;
  readonly limits: ArchiveLimits;
  /** A new directory in staging, for what is on its way. */
  readonly scratch: string;
}

/** @throws WritError of every kind: something of what is kept is damaged, or the disk is full */
export async function rebuildKept(options: RebuildOptions): Promise<StagedBundle> {
  const { copy, limits, fs, scratch, signal, target } = options;
  const inScratch = (name: string): string => join(scratch, name);
  const reading = { fs, limits, ...given({ signal }) };
  const archive = await fetchArchive({
    ...reading,
    client: fromKept(copy.archive.path),
    target: targetOfArchive(target, copy),
    directory: scratch,
  });
  let made = await stageBundle({ ...options, archive, directory: inScratch('tree-0') });
  for (const [index, kept] of copy.deltas.entries()) {
    const isLast = index === copy.deltas.length - 1;
    const from = made.release.manifest.digest;
    const delta = await fetchDelta({
      ...reading,
      client: fromKept(kept.path),
      target: isLast ? target : targetOnTheWay(target, kept),
      delta: { from, length: kept.length, digest: kept.digest },
      directory: scratch,
    });
    const next = await stageByDifference({
      ...options,
      target: isLast ? target : targetOnTheWay(target, kept),
      base: made,
      delta,
      directory: isLast ? options.directory : inScratch(`tree-${index + 1}`),
    });
    fs.discardFile('stage.kept', delta.path);
    fs.removeTree('stage.kept-tree', made.treePath);
    made = next;
  }
  return made;
}

/** Nobody asks who vouches for what is on the way: the release at its end has a signed digest. */
function targetOnTheWay(target: SignedTarget, { manifest }: KeptFile): SignedTarget {
  const { stamped: _, ...release } = target.release;
  return { ...target, release: { ...release, manifest } };
}

function targetOfArchive(target: SignedTarget, { archive, target: path }: KeptCopy): SignedTarget {
  const { length, digest } = archive;
  const file = { length, hashes: { sha256: digestHex(digest) } };
  return { ...targetOnTheWay(target, archive), path, file, length, digest };
}
