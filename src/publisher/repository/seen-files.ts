// The files that snapshots on disk list beside the published one. Attack: a thief of the online keys publishes a snapshot that
// lists older files, so that published files seem to wait. A file that any verified snapshot lists counts as seen by hosts,
// because its serials must not be used again. Reads, and writes nothing.
import { WritError } from '../../core/errors.js';
import { isNamedBy, isVouchedByRoot } from '../../core/tuf/metadata-checks.js';
import type { MetaFile, ParsedFile } from '../../core/tuf/tuf-metadata.js';
import { delegatedRolesOf, readDelegatedFile } from './delegated-files.js';
import { readLoosely } from './loose-metadata.js';
import { metadataName, type RepositoryLayout, unlessRefused, versionsOnDisk } from './repository-layout.js';
import { compareSigning, lastSeenVersion, readVersionRestarts } from './version-restarts.js';

/**
 * The oldest and the newest snapshots that are read. The oldest count too, because a thief can add any number of newer ones
 * above those of the publisher.
 */
const maxSnapshotsAtEachEnd = 1000;

export interface PublishedSnapshot {
  readonly layout: RepositoryLayout;
  readonly live: { readonly snapshot: ParsedFile<'snapshot'> };
  /** From the first trusted root to the newest. */
  readonly roots: readonly ParsedFile<'root'>[];
}

/** A file that is later than the one that the published snapshot lists. */
export interface LaterListing {
  readonly meta: MetaFile;
  /** The version of the snapshot that lists it. */
  readonly snapshot: number;
}

/**
 * A snapshot counts if keys of a root sign it that signs the published one too: what replaced keys sign, hosts no longer accept.
 * @returns by role what snapshots on disk list, where it is later than what the published snapshot lists; latest first
 * @throws WritError DISK_*
 */
export function readLaterListings({
  layout,
  live: { snapshot },
  roots,
}: PublishedSnapshot): ReadonlyMap<string, readonly LaterListing[]> {
  const restarts = readVersionRestarts(snapshot.signed);
  const published = { meta: snapshot.signed.meta, restarts };
  const compare = (role: string, one: number, other: number): number =>
    compareSigning(restarts.get(role), one, other);
  const signing = roots.filter((root) => isVouchedByRoot(snapshot, root));
  const later = new Map<string, LaterListing[]>();
  for (const version of versionsToRead(layout)) {
    const file = readLoosely(layout, 'snapshot', version);
    const entries = Object.entries(file?.signed.meta ?? {})
      .map(([name, meta]) => [name.replace(/\.json$/, ''), meta] as const)
      .filter(([role, meta]) => compare(role, meta.version, lastSeenVersion(published, role)) > 0);
    // After the comparison, because it costs less than a signature.
    const isVerified =
      file !== undefined && entries.length > 0 && signing.some((root) => isVouchedByRoot(file, root));
    if (!isVerified || file.signed.version !== version) continue;
    for (const [role, meta] of entries)
      later.set(role, [...(later.get(role) ?? []), { meta, snapshot: version }]);
  }
  for (const [role, listings] of later)
    listings.sort((a, b) => compare(role, b.meta.version, a.meta.version) || a.snapshot - b.snapshot);
  return later;
}

function versionsToRead(layout: RepositoryLayout): readonly number[] {
  const versions = versionsOnDisk(layout, 'snapshot');
  if (versions.length <= 2 * maxSnapshotsAtEachEnd) return versions;
  return [...versions.slice(0, maxSnapshotsAtEachEnd), ...versions.slice(-maxSnapshotsAtEachEnd)];
}

/**
 * @param targets delegate to the role
 * @returns the newest file of a role that a snapshot lists and the published one does not; undefined where the published
 *   snapshot lists the newest one
 */
export function readSeenFile(
  published: PublishedSnapshot,
  targets: ParsedFile<'targets'>,
  role: string,
): ParsedFile<'targets'> | undefined {
  const delegated = delegatedRolesOf(targets).find(({ name }) => name === role);
  if (delegated === undefined) return undefined;
  const listings = readLaterListings(published).get(role) ?? [];
  for (const version of new Set(listings.map(({ meta }) => meta.version))) {
    const file = unlessRefused(() => readDelegatedFile(published.layout, targets, delegated, version));
    if (file !== undefined && listings.some(({ meta }) => isNamedBy(meta, file))) return file;
  }
  return undefined;
}

/** @returns an error that names the published snapshot and an older one that lists a later version; undefined without one */
export function findSnapshotRollback(published: PublishedSnapshot): WritError | undefined {
  const { version, meta } = published.live.snapshot.signed;
  // A kill leaves a newer snapshot that was never published.
  const found = [...readLaterListings(published)].flatMap(([role, listings]) => {
    const older = listings.find(({ snapshot }) => snapshot < version);
    return older === undefined ? [] : [{ role, older }];
  });
  const [first] = found;
  if (first === undefined) return undefined;
  const { role, older } = first;
  const actual = meta[`${role}.json`]?.version;
  const name = metadataName('snapshot', version);
  const listed = actual === undefined ? `does not list ${role}` : `lists ${role} v${actual}`;
  const other = `${metadataName('snapshot', older.snapshot)} lists v${older.meta.version}`;
  const more = found.length === 1 ? '' : ` (and ${found.length - 1} more)`;
  return new WritError(
    'METADATA_ROLLBACK',
    `${name} ${listed}, and the older ${other}${more}: hosts refuse it`,
    {
      facts: {
        role,
        name,
        expected: older.meta.version,
        actual: actual ?? 0,
        roles: found.map((one) => one.role),
      },
      hint: 'A stolen online key may have signed it: docs/operations.md, "A stolen online key". `writ refresh` publishes the newest files.',
    },
  );
}
