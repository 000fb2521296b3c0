// Deltas of a release that becomes the head of a channel without a new tree, by `writ promote` or `writ withdraw`. Hosts
// come to it from the last releases of that channel, but its published deltas start from releases of its first channel.
// Signs nothing.
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

/** Hosts are seldom more releases behind. For the publisher, a delta costs about as much as one publish. */
export const defaultDeltas = 4;

export interface MoveOptions extends ChangeOptions {
  /** The number of last releases of the channel that become base releases of deltas; at most maxDeltas. */
  readonly deltas?: number | undefined;
  readonly limits?: ArchiveLimits | undefined;
}

/** A release that becomes the head of a channel. */
export interface ReleaseMove {
  /** The current or former entry of the release; its archive exists. */
  readonly from: ListedRelease;
  /** The new entry, with the retained deltas that lead to the release. */
  readonly release: ReleaseInfo;
}

/**
 * @param before the repository before the move, with the base releases of the deltas
 * @returns the new deltas, without the retained ones
 * @throws WritError DISK_*
 */
export async function makeMovedDeltas(
  writer: RepositoryWriter,
  before: RepositoryState,
  { from, release }: ReleaseMove,
  options: MoveOptions,
): Promise<readonly DeltaInfo[]> {
  const { deltas: count = defaultDeltas, limits = defaultArchiveLimits, report } = options;
  const { bundle, channel, deltas: kept = [] } = release;
  // The same release stays head with more withdrawn serials, and has its published deltas.
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
