// Deltas of a release that becomes the head of a channel without a new tree, by `writ promote` or `writ withdraw`: hosts come to it
// from the last releases of that channel, and the deltas that it was published with lead from those of its own. Signs nothing.
import { type ArchiveLimits, defaultArchiveLimits } from '../../core/limits.js';
import { type DeltaInfo, maxDeltas } from '../../core/release/deltas.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { readManifestOf } from '../archive/archive-reader.js';
import { makeDeltas } from '../delta/make-deltas.js';
import { treeOfArchive } from '../delta/new-tree.js';
import { findHead, type ListedRelease } from '../repository/listing.js';
import type { RepositoryState } from '../repository/repository-state.js';
import type { RepositoryWriter } from '../repository/repository-writer.js';
import type { ChangeOptions } from '../signing/sign-change.js';
import { lastReleases } from './release-history.js';

/** Hosts are seldom further behind, and each costs the publisher about what one costs him. */
export const defaultDeltas = 4;

export interface MoveOptions extends ChangeOptions {
  /** From so many releases of the channel deltas are made; at most maxDeltas. */
  readonly deltas?: number | undefined;
  readonly limits?: ArchiveLimits | undefined;
}

/** A release that becomes the head of a channel. */
export interface ReleaseMove {
  /** As it is listed, or was; its archive is there. */
  readonly from: ListedRelease;
  /** As it will be listed, with the deltas that go on leading to it. */
  readonly release: ReleaseInfo;
}

/** @returns the deltas it gets, beside those that it has. @throws WritError DISK_* */
export async function makeMovedDeltas(
  writer: RepositoryWriter,
  before: RepositoryState,
  { from, release }: ReleaseMove,
  options: MoveOptions,
): Promise<readonly DeltaInfo[]> {
  const { deltas: count = defaultDeltas, limits = defaultArchiveLimits, report } = options;
  const { bundle, channel, deltas: kept = [] } = release;
  // The head of before, with more serials taken back: it has what it was published with.
  const isHead = findHead(before, bundle, channel)?.release.serial === release.serial;
  if (count === 0 || isHead) return [];
  const known = new Set([release.manifest.digest, ...kept.map((delta) => delta.from)]);
  const bases = lastReleases(before, { bundle, channel, count })
    .filter((one) => !known.has(one.release.manifest.digest))
    .slice(0, maxDeltas - kept.length);
  if (bases.length === 0) return [];
  report.begin('delta', `from ${bases.length} earlier releases`);
  const read = await readManifestOf(writer.layout, from, limits);
  if (read === undefined) return [];
  const archiveBytes = from.file.length;
  const how = { ...options, bundle, channel, limits, archiveBytes };
  return makeDeltas(writer, treeOfArchive({ ...from, read }), bases, how);
}
