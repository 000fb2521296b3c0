// Remembers the snapshots that list nothing later than the published one. `writ serve --keys` compares all snapshots at
// each signature while a team is unsigned, and must not read each file again. Only the absence of a later listing is
// remembered, because a thief with write access can also remove the file. A listing that counts is read and verified each
// time.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { listedRole, type ParsedFile, type SnapshotSigned } from '../../core/tuf/tuf-metadata.js';
import { metadataName, type RepositoryLayout } from './repository-layout.js';
import { readUnverified } from './unverified-metadata.js';
import { compareSigning, lastSeenVersion, type VersionRestarts } from './version-restarts.js';

interface PublishedListing {
  readonly meta: SnapshotSigned['meta'];
  readonly restarts: VersionRestarts;
}

interface ComparedSnapshots {
  readonly published: PublishedListing;
  /** File stamps by version of the snapshot. */
  readonly stamps: Map<number, string>;
}

/** The memory of one repository. */
export interface SnapshotMemory {
  /** Undefined before the first comparison. */
  compared: ComparedSnapshots | undefined;
}

/** @returns a memory without a comparison: the next one reads every snapshot */
export function createSnapshotMemory(): SnapshotMemory {
  return { compared: undefined };
}

interface UncomparedSnapshot {
  readonly version: number;
  /** Undefined for a file that is not a snapshot. */
  readonly file: ParsedFile<'snapshot'> | undefined;
  /** Records that the file lists nothing later. It is read again only after it or the published snapshot changed. */
  readonly markCompared: () => void;
}

/**
 * @param versions of snapshots on disk
 * @param memory of earlier comparisons in the same repository; it is changed
 * @returns the snapshots that may list a later file than the published one
 * @throws WritError DISK_*
 */
export function* readUncomparedSnapshots(
  layout: RepositoryLayout,
  versions: readonly number[],
  published: PublishedListing,
  memory: SnapshotMemory,
): Generator<UncomparedSnapshot> {
  const stamps = stampsFor(memory, published);
  for (const version of versions) {
    // The stamp is taken before the file is read, so that a file that is replaced meanwhile is read again.
    const stamp = stampText(join(layout.metadata, metadataName('snapshot', version)));
    if (stamps.get(version) === stamp) continue;
    yield {
      version,
      file: readUnverified(layout, 'snapshot', version),
      markCompared: () => stamps.set(version, stamp),
    };
  }
}

function stampsFor(memory: SnapshotMemory, published: PublishedListing): Map<number, string> {
  const { compared } = memory;
  const isKept = compared !== undefined && isSameOrLater(published, compared.published);
  const stamps = isKept ? compared.stamps : new Map<number, string>();
  memory.compared = { published, stamps };
  return stamps;
}

function isSameOrLater(published: PublishedListing, before: PublishedListing): boolean {
  const textOf = ({ restarts }: PublishedListing): string => JSON.stringify([...restarts]);
  if (textOf(published) !== textOf(before)) return false;
  const roles = Object.keys(before.meta).map(listedRole);
  return roles.every((role) => {
    const restart = published.restarts.get(role);
    return compareSigning(restart, lastSeenVersion(published, role), lastSeenVersion(before, role)) >= 0;
  });
}

/** @returns a text that changes with the file, also where its size and modification time were restored */
function stampText(path: string): string {
  const status = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (status === undefined) return 'missing';
  return [status.ino, status.size, status.mtimeNs, status.ctimeNs].join(' ');
}
