// The deltas of a new release, from the last releases of its channel: each made, compared by size with the archive, and applied once
// before anybody signs it. Which bases get one follows from sizes alone, so that two publishers make the same release.
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
import { requireLeads } from './apply-delta.js';
import { type Base, type BaseFiles, openBaseFiles } from './base-files.js';
import type { NewTree } from './new-tree.js';

/** An archive that fits into the first answers of a server costs no more time than a delta of it. */
const smallArchiveBytes = 16_000;
/** A delta has to save so much of the archive, or it is not worth its place and its second way to fail. */
const maxShare = 1 / 2;

export interface DeltaOptions {
  readonly bundle: string;
  readonly channel: string;
  readonly limits: ArchiveLimits;
  readonly durableFs: DurableFs;
  /** Of the archive that a host would fetch instead. */
  readonly archiveBytes: number;
  readonly report: Pick<WorkReport, 'progress'>;
}

/** Where deltas are made: nothing is there of one that is not worth it, or was only tried. */
export type DeltaPlace = Pick<RepositoryWriter, 'layout' | 'temporaryPath' | 'placeFile'>;

/**
 * Makes deltas, and puts them in their places.
 * @param releases from which deltas are made, where that is worth it; one whose archive is gone or damaged gets none
 * @returns what is to be signed about them, in the order of the releases
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
    const ways = bases.map((base) => planWay(base, tree));
    const wanted = new Set(ways.flatMap(({ plan }) => plan.map(({ file }) => file)));
    if (!(await tree.gather([...wanted], files))) return [];
    let what = '';
    const part = createTally(
      ways.reduce((sum, { bytes }) => sum + bytes, 0),
      (done, total) => options.report.progress('delta', { done, total, unit: 'bytes' }, what),
    );
    for (const [index, { base, sources, bytes }] of ways.entries()) {
      what = `${index + 1} of ${ways.length}   from serial ${base.release.serial}`;
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

function planWay(base: Base, tree: NewTree) {
  const plan = planDelta(base.read.manifest, tree.manifest);
  const sources = plan.flatMap(({ from }) => from ?? []);
  // What is read for it: of the base out of its archive, and the new files while they are compared.
  const read = [...sources, ...plan.map(({ file }) => file)];
  const bytes = read.reduce((sum, file) => sum + file.sizeBytes, tree.manifestBytes.length);
  return { base, plan, sources, bytes };
}

/** Each tree once, and not the new one: a channel may have had one under several serials. */
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

interface Way {
  readonly tree: NewTree;
  readonly base: Base;
  readonly files: BaseFiles;
  /** Told of bytes of the new files that were compared. */
  readonly more: More;
}

async function makeDelta(
  place: DeltaPlace,
  way: Way,
  { bundle, channel, limits, durableFs, archiveBytes }: DeltaOptions,
): Promise<DeltaInfo | undefined> {
  const { tree, base, files } = way;
  const path = place.temporaryPath();
  let decodedBytes = 0;
  const counted = function* (): Generator<Buffer> {
    for (const piece of encodeDelta(base.read, tree, (one) => openContents(way, one))) {
      decodedBytes += piece.length;
      yield piece;
    }
  };
  const maxBytes = Math.floor(archiveBytes * maxShare);
  const written = await compressFile(counted(), { path, op: 'repo.delta:write', maxBytes, durableFs });
  if (written === undefined) return undefined;
  const { bytes: length, digest } = written;
  try {
    // Hosts would take it for a bomb, as they would not take the archive.
    if (decodedBytes > maxDecodedBytes(length, limits)) return undefined;
    const manifest = { digest: tree.manifestDigest, length: tree.manifestBytes.length };
    const { source } = files;
    const trial = { path, deltaBytes: length, base: base.read, manifest, limits, source };
    await requireLeads({ ...trial, known: tree.manifest });
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

function openContents({ tree, files, more }: Way, { file, from }: DeltaFile): DeltaContents {
  const base = files.source(from);
  const { bytes, close } = tree.open(file, files);
  return { base, next: watched(bytes, more), close };
}

/** Bytes may be read again, and from the end: told are as many as there are. */
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
