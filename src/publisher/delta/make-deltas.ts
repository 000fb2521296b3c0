// Makes the deltas of a new release from the last releases of its channel. Each is compared by size with the archive, and
// applied once before it is signed. Only sizes decide which bases get a delta, so that two publishers make the same
// release.
import * as fs from 'node:fs';
import type { ByteSource } from '../../core/delta/byte-source.js';
import { maxDecodedBytes } from '../../core/delta/delta-reader.js';
import { type DeltaContents, type DeltaFile, encodeDelta, planDelta } from '../../core/delta/delta-writer.js';
import { isWritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import { createTally, type More, type WorkReport } from '../../core/work-report.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { readManifestOf, type StoredRelease } from '../archive/archive-reader.js';
import { compressFile } from '../archive/compress-file.js';
import type { RepositoryWriter } from '../repository/repository-writer.js';
import { requireDeltaResult } from './apply-delta.js';
import { type Base, type BaseFiles, openBaseFiles } from './base-files.js';
import type { NewTree } from './new-tree.js';

/** A download of a smaller archive takes no more time than that of a delta. */
const smallArchiveBytes = 16_000;
/**
 * The largest size of a delta as a share of the archive. A larger delta does not save enough for the disk space and the
 * additional cause of failures.
 */
const maxShare = 1 / 2;

export interface DeltaOptions {
  readonly bundle: string;
  readonly channel: string;
  readonly limits: ArchiveLimits;
  readonly durableFs: DurableFs;
  /** The size of the archive that a host would otherwise download. */
  readonly archiveBytes: number;
  readonly report: Pick<WorkReport, 'progress'>;
}

/** The place for new deltas. A delta that is not kept leaves no file. */
export type DeltaPlace = Pick<RepositoryWriter, 'layout' | 'temporaryPath' | 'placeFile'>;

/**
 * Makes deltas and places them.
 * @param releases the possible base releases; one with a missing or damaged archive gets no delta
 * @returns the signed descriptions of the deltas, in the order of the releases
 * @throws WritError SOURCE_REFUSED when SOURCE changed since it was packed; DISK_*
 */
export async function makeDeltas(
  place: DeltaPlace,
  tree: NewTree,
  releases: readonly StoredRelease[],
  options: DeltaOptions,
): Promise<DeltaInfo[]> {
  if (options.archiveBytes <= smallArchiveBytes) return [];
  const bases = await readBases(place, tree, releases, options);
  if (bases.length === 0) return [];
  const files = openBaseFiles(place.temporaryPath(), { layout: place.layout, limits: options.limits });
  const made: DeltaInfo[] = [];
  try {
    const plans = bases.map((base) => planBase(base, tree));
    const wanted = new Set(plans.flatMap(({ plan }) => plan.map(({ file }) => file)));
    if (!(await tree.gather([...wanted], files))) return [];
    let what = '';
    const part = createTally(
      plans.reduce((sum, { bytes }) => sum + bytes, 0),
      (done, total) => options.report.progress('delta', { done, total, unit: 'bytes' }, what),
    );
    for (const [index, { base, sources, bytes }] of plans.entries()) {
      what = `${index + 1} of ${plans.length}   from serial ${base.release.serial}`;
      const more = part(bytes);
      const delta = (await files.add(base, sources, more))
        ? await makeDelta(place, { tree, base, files, more }, options)
        : undefined;
      if (delta !== undefined) made.push(delta);
    }
  } finally {
    files.close();
  }
  return made;
}

function planBase(base: Base, tree: NewTree) {
  const plan = planDelta(base.read.manifest, tree.manifest);
  const sources = plan.flatMap(({ from }) => from ?? []);
  // The bytes to read: files of the base from its archive, and the new files for the comparison.
  const read = [...sources, ...plan.map(({ file }) => file)];
  const bytes = read.reduce((sum, file) => sum + file.sizeBytes, tree.manifestBytes.length);
  return { base, plan, sources, bytes };
}

/** Reads each tree once, without the new tree, because a channel may have had one tree under several serials. */
async function readBases(
  { layout }: DeltaPlace,
  { manifestDigest }: NewTree,
  releases: readonly StoredRelease[],
  { limits }: DeltaOptions,
): Promise<Base[]> {
  const seen = new Set([manifestDigest]);
  const bases: Base[] = [];
  for (const stored of releases) {
    const { digest } = stored.release.manifest;
    if (seen.has(digest)) continue;
    seen.add(digest);
    const read = await readManifestOf(layout, stored, limits);
    if (read !== undefined) bases.push({ ...stored, read });
  }
  return bases;
}

interface DeltaWork {
  readonly tree: NewTree;
  readonly base: Base;
  readonly files: BaseFiles;
  /** Receives the numbers of compared bytes of the new files. */
  readonly more: More;
}

async function makeDelta(
  place: DeltaPlace,
  work: DeltaWork,
  { bundle, channel, limits, durableFs, archiveBytes }: DeltaOptions,
): Promise<DeltaInfo | undefined> {
  const { tree, base, files } = work;
  const path = place.temporaryPath();
  let decodedBytes = 0;
  const counted = function* (): Generator<Buffer> {
    for (const piece of encodeDelta(base.read, tree, (one) => openContents(work, one))) {
      decodedBytes += piece.length;
      yield piece;
    }
  };
  const maxBytes = Math.floor(archiveBytes * maxShare);
  const written = await compressFile(counted(), { path, op: 'repo.delta:write', maxBytes, durableFs });
  if (written === undefined) return undefined;
  const { bytes: length, digest } = written;
  try {
    // Hosts would refuse the delta as a decompression bomb.
    if (decodedBytes > maxDecodedBytes(length, limits)) return undefined;
    const manifest = { digest: tree.manifestDigest, length: tree.manifestBytes.length };
    const { source } = files;
    const trial = { path, deltaBytes: length, base: base.read, manifest, limits, source };
    await requireDeltaResult({ ...trial, known: tree.manifest });
    place.placeFile(path, { kind: 'delta', bundle, channel, digest });
    return { from: base.release.manifest.digest, digest, length };
  } catch (error) {
    if (!isWritError(error) || error.code !== 'DELTA_MALFORMED') throw error;
    if (tree.changed !== undefined) throw tree.changed();
    return undefined;
  } finally {
    fs.rmSync(path, { force: true });
  }
}

function openContents({ tree, files, more }: DeltaWork, { file, from }: DeltaFile): DeltaContents {
  const base = files.source(from);
  const { bytes, close } = tree.open(file, files);
  return { base, next: watched(bytes, more), close };
}

/** Reports each byte at most once, because a comparison may read bytes again and from the end. */
function watched({ length, read }: ByteSource, more: More): ByteSource {
  let left = length;
  return {
    length,
    read: (offset, count) => {
      const fresh = Math.min(count, left);
      left -= fresh;
      more(fresh);
      return read(offset, count);
    },
  };
}
