// The snapshots that list nothing later than the published one: `writ serve --keys` compares all of them at each signature while a
// team is unsigned, and must not read each file again. Only the absence of a later listing is remembered: a thief with write
// access can remove the file with the same effect. A listing that counts is read and verified each time.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { listedRole, type ParsedFile, type SnapshotSigned } from '../../core/tuf/tuf-metadata.js';
import { readLoosely } from './loose-metadata.js';
import { metadataName, type RepositoryLayout } from './repository-layout.js';
import { compareSigning, lastSeenVersion, type VersionRestarts } from './version-restarts.js';

interface PublishedListing {
  readonly meta: SnapshotSigned['meta'];
  readonly restarts: VersionRestarts;
}

interface SettledSnapshots {
  readonly published: PublishedListing;
  /** By version. */
  readonly stamps: Map<number, string>;
}

/** Belongs to one repository. */
export interface SnapshotMemory {
  /** Undefined before the first comparison. */
  settled: SettledSnapshots | undefined;
}

export function createSnapshotMemory(): SnapshotMemory {
  return { settled: undefined };
}

interface UnsettledSnapshot {
  readonly version: number;
  /** Undefined for a file that is no snapshot. */
  readonly file: ParsedFile<'snapshot'> | undefined;
  /** The caller found nothing later in the file: it is not read again while the file and the published snapshot stay. */
  readonly settle: () => void;
}

/**
 * @param versions of snapshots on disk
 * @param memory of earlier comparisons in the same repository; is changed
 * @returns those that may list a later file than the published snapshot
 * @throws WritError DISK_*
 */
export function* readUnsettled(
  layout: RepositoryLayout,
  versions: readonly number[],
  published: PublishedListing,
  memory: SnapshotMemory,
): Generator<UnsettledSnapshot> {
  const stamps = stampsFor(memory, published);
  for (const version of versions) {
    // Before the file is read: a file that is replaced meanwhile is read again.
    const stamp = stampText(join(layout.metadata, metadataName('snapshot', version)));
    if (stamps.get(version) === stamp) continue;
    yield {
      version,
      file: readLoosely(layout, 'snapshot', version),
      settle: () => stamps.set(version, stamp),
    };
  }
}

function stampsFor(memory: SnapshotMemory, published: PublishedListing): Map<number, string> {
  const { settled } = memory;
  const isKept = settled !== undefined && isSameOrLater(published, settled.published);
  const stamps = isKept ? settled.stamps : new Map<number, string>();
  memory.settled = { published, stamps };
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
