// The deltas of a new release, from the last releases of its channel: each made, compared by size with the archive, and applied once
// before anybody signs it. Which bases get one follows from sizes alone, so that two publishers make the same release.
import * as fs from 'node:fs';
import { bytesAsSource } from '../../core/delta/byte-source.js';
import { maxDecodedBytes } from '../../core/delta/delta-reader.js';
import { type DeltaFile, encodeDelta, planDelta } from '../../core/delta/delta-writer.js';
import { isWritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { readManifestOf, type StoredRelease } from '../archive/archive-reader.js';
import { compressFile } from '../archive/compress-file.js';
import { changedSource, openSourceFile, type PackedTree } from '../archive/source-tree.js';
import type { RepositoryWriter } from '../repository/repository-writer.js';
import { requireLeads } from './apply-delta.js';
import { type Base, type BaseFiles, openBaseFiles } from './base-files.js';
import { fileAsSource } from './file-source.js';

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
}

/**
 * Makes deltas, and puts them in their places.
 * @param releases from which deltas are made, where that is worth it; one whose archive is gone or damaged gets none
 * @returns what is to be signed about them, in the order of the releases
 * @throws WritError SOURCE_REFUSED when SOURCE changed since it was packed; DISK_*
 */
export async function makeDeltas(
  writer: RepositoryWriter,
  tree: PackedTree,
  releases: readonly StoredRelease[],
  options: DeltaOptions,
): Promise<DeltaInfo[]> {
  if (options.archiveBytes <= smallArchiveBytes) return [];
  const bases = await readBases(writer, tree, releases, options);
  if (bases.length === 0) return [];
  const files = openBaseFiles(writer.temporaryPath(), { layout: writer.layout, limits: options.limits });
  const made: DeltaInfo[] = [];
  try {
    for (const base of bases) {
      const sources = planDelta(base.read.manifest, tree.manifest).flatMap(({ from }) => from ?? []);
      const delta = (await files.add(base, sources))
        ? await makeDelta(writer, { tree, base, files }, options)
        : undefined;
      if (delta !== undefined) made.push(delta);
    }
  } finally {
    files.close();
  }
  return made;
}

/** Each tree once, and not the new one: a channel may have had one under several serials. */
async function readBases(
  { layout }: RepositoryWriter,
  { manifestDigest }: PackedTree,
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
  readonly tree: PackedTree;
  readonly base: Base;
  readonly files: BaseFiles;
}

async function makeDelta(
  writer: RepositoryWriter,
  way: Way,
  { bundle, channel, limits, durableFs, archiveBytes }: DeltaOptions,
): Promise<DeltaInfo | undefined> {
  const { tree, base, files } = way;
  const path = writer.temporaryPath();
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
    writer.placeFile(path, { kind: 'delta', bundle, channel, digest });
    return { from: base.release.manifest.digest, digest, length };
  } catch (error) {
    // What it was made of has changed under it: nothing else makes a delta of ours wrong.
    throw isWritError(error) && error.code === 'DELTA_MALFORMED' ? changedSource(tree.source) : error;
  } finally {
    fs.rmSync(path, { force: true });
  }
}

function openContents({ tree, files }: Way, { file, from }: DeltaFile) {
  const base = files.source(from);
  const content = tree.contents?.get(file.path);
  if (content !== undefined) return { base, next: bytesAsSource(content), close: () => undefined };
  const { descriptor } = openSourceFile(tree.source, file.path);
  const part = { descriptor, start: 0, length: file.sizeBytes };
  const next = fileAsSource(part, () => changedSource(file.path));
  return { base, next, close: () => fs.closeSync(descriptor) };
}
