// The files of a release with their places and signed lengths: its archive and its deltas. Callers treat all of them alike.
// Pure, except for isFilePresent.
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

/** @returns undefined for an entry without a SHA-256 digest */
export function archiveOf({ release, file }: Listed): ReleaseFile | undefined {
  const { bundle, channel } = release;
  const digest = digestFromHex(file.hashes['sha256']);
  return digest && { place: { kind: 'archive', bundle, channel, digest }, length: file.length };
}

/** @returns the deltas of a listed release with their signed lengths in bytes; empty without deltas */
export function deltasOf({ release }: Pick<Listed, 'release'>): ReleaseFile[] {
  const { bundle, channel, deltas = [] } = release;
  return deltas.map(({ digest, length }) => ({ place: { kind: 'delta', bundle, channel, digest }, length }));
}

/** @returns the archive, then the deltas */
export function filesOf(entry: Listed): ReleaseFile[] {
  const archive = archiveOf(entry);
  return archive === undefined ? deltasOf(entry) : [archive, ...deltasOf(entry)];
}

/** @returns true for a regular file with the signed length; the digest is not verified */
export function isFilePresent({ targets }: RepositoryLayout, { place, length }: ReleaseFile): boolean {
  const status = fs.statSync(join(targets, pathOf(place)), { throwIfNoEntry: false });
  return status?.isFile() === true && status.size === length;
}

/** @returns the deltas of a release that are still on disk; undefined where none is */
export function listPresentDeltas(layout: RepositoryLayout, entry: Listed): ReleaseInfo['deltas'] {
  const there = new Set(
    deltasOf(entry)
      .filter((delta) => isFilePresent(layout, delta))
      .map(({ place }) => place.digest),
  );
  const deltas = entry.release.deltas?.filter(({ digest }) => there.has(digest)) ?? [];
  return deltas.length === 0 ? undefined : deltas;
}
