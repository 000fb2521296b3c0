// Which files belong to a release, where they lie, and how long they are signed to be: its archive, and its deltas. What looks after
// the one looks after the others. Pure, except for the question whether they are there.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { digestFromHex } from '../../core/names.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { ListedRelease } from './listing.js';
import { type FilePlace, pathOf, type RepositoryLayout } from './repository-layout.js';

export interface ReleaseFile {
  readonly place: FilePlace;
  /** Bytes, as signed. */
  readonly length: number;
}

type Listed = Pick<ListedRelease, 'release' | 'file'>;

/** @returns undefined for an entry without a digest of ours */
export function archiveOf({ release, file }: Listed): ReleaseFile | undefined {
  const { bundle, channel } = release;
  const digest = digestFromHex(file.hashes['sha256']);
  return digest && { place: { kind: 'archive', bundle, channel, digest }, length: file.length };
}

export function deltasOf({ release }: Pick<Listed, 'release'>): ReleaseFile[] {
  const { bundle, channel, deltas = [] } = release;
  return deltas.map(({ digest, length }) => ({ place: { kind: 'delta', bundle, channel, digest }, length }));
}

/** @returns the archive first */
export function filesOf(entry: Listed): ReleaseFile[] {
  const archive = archiveOf(entry);
  return archive === undefined ? deltasOf(entry) : [archive, ...deltasOf(entry)];
}

/** @returns true for a regular file of the signed length; its digest is not asked */
export function isThere({ targets }: RepositoryLayout, { place, length }: ReleaseFile): boolean {
  const status = fs.statSync(join(targets, pathOf(place)), { throwIfNoEntry: false });
  return status?.isFile() === true && status.size === length;
}

/** @returns those deltas of a release that are still there; undefined for none */
export function standingDeltas(layout: RepositoryLayout, entry: Listed): ReleaseInfo['deltas'] {
  const there = new Set(
    deltasOf(entry)
      .filter((delta) => isThere(layout, delta))
      .map(({ place }) => place.digest),
  );
  const deltas = entry.release.deltas?.filter(({ digest }) => there.has(digest)) ?? [];
  return deltas.length === 0 ? undefined : deltas;
}
