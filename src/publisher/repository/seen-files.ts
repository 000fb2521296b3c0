// The files that other snapshots on disk list. Attack: a thief of the online keys publishes a snapshot that lists older
// files, so that published files seem to wait. A file that any verified snapshot lists counts as seen by hosts, because its
// serials must not be used again. Reads only.
import { WritError } from '../../core/errors.js';
import { isNamedBy, isVouchedByRoot } from '../../core/tuf/metadata-checks.js';
import { listedRole, type MetaFile, type ParsedFile } from '../../core/tuf/tuf-metadata.js';
import { delegatedRolesOf, readDelegatedFile } from './delegated-files.js';
import {
  metadataName,
  type RepositoryLayout,
  readUnlessRefused,
  versionsOnDisk,
} from './repository-layout.js';
import { readUncomparedSnapshots, type SnapshotMemory } from './snapshot-memory.js';
import { readUnverified } from './unverified-metadata.js';
import { compareSigning, lastSeenVersion, listedFile, readVersionRestarts } from './version-restarts.js';

/**
 * The number of oldest and of newest snapshots that are read. The oldest count too, because a thief can add any number of
 * snapshots above those of the publisher.
 */
const maxSnapshotsAtEachEnd = 5000;

export interface PublishedSnapshot {
  readonly layout: RepositoryLayout;
  readonly live: { readonly snapshot: ParsedFile<'snapshot'> };
  /** From the first trusted root to the newest. */
  readonly roots: readonly ParsedFile<'root'>[];
  readonly snapshotMemory: SnapshotMemory;
}

/** A file that is later than the one that the published snapshot lists. */
export interface LaterListing {
  readonly meta: MetaFile;
  /** The version of the snapshot that lists it. */
  readonly snapshot: number;
}

/**
 * A snapshot counts only under a root that verifies the published snapshot too, because hosts no longer accept replaced
 * keys.
 * @returns by role the files that snapshots on disk list, and that are later than the file in the published snapshot;
 *   latest first
 * @throws WritError DISK_*
 */
export function readLaterListings({
  layout,
  live: { snapshot },
  roots,
  snapshotMemory,
}: PublishedSnapshot): ReadonlyMap<string, readonly LaterListing[]> {
  const restarts = readVersionRestarts(snapshot.signed);
  const published = { meta: snapshot.signed.meta, restarts };
  const compare = (role: string, one: number, other: number): number =>
    compareSigning(restarts.get(role), one, other);
  const signing = roots.filter((root) => isVouchedByRoot(snapshot, root));
  const later = new Map<string, LaterListing[]>();
  for (const { version, file, markCompared } of readUncomparedSnapshots(
    layout,
    versionsToRead(layout),
    published,
    snapshotMemory,
  )) {
    const entries = Object.entries(file?.signed.meta ?? {})
      .map(([name, meta]) => [listedRole(name), meta] as const)
      .filter(([role, meta]) => compare(role, meta.version, lastSeenVersion(published, role)) > 0);
    if (entries.length === 0) markCompared();
    // After the comparison, because the comparison costs less than a signature.
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
 * @param targets the targets that delegate to the role
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
    const file = readUnlessRefused(() => readDelegatedFile(published.layout, targets, delegated, version));
    if (file !== undefined && listings.some(({ meta }) => isNamedBy(meta, file))) return file;
  }
  return undefined;
}

/**
 * After a key change, the newest file of a team does not verify until the team signs, and the next snapshot keeps the
 * published entry. Attack: a thief's snapshot listed an older file. Hosts that saw the newest one would then refuse each
 * snapshot, and with it the releases of all other roles.
 * @param verified names of the roles with a file that verifies; the snapshot lists that file
 * @returns the entries that the next snapshot keeps, with the newest listed file of each other role, also of a removed one
 */
export function keepSeenListings(
  published: PublishedSnapshot & { readonly targets: ParsedFile<'targets'> },
  verified: ReadonlySet<string>,
): Readonly<Record<string, MetaFile>> {
  const { meta } = published.live.snapshot.signed;
  const delegated = new Set(delegatedRolesOf(published.targets).map(({ name }) => name));
  const listed = Object.keys(meta).map(listedRole);
  // All snapshots are read only where a role needs it, because the server signs each hour.
  if ([...listed, ...delegated].every((role) => role === 'targets' || verified.has(role))) return meta;
  const seen = [...readLaterListings(published)].flatMap(([role, listings]) => {
    if (role === 'targets' || verified.has(role)) return [];
    // Hosts do not fetch the file of a removed role, but refuse a snapshot with an older version of it.
    const found = delegated.has(role)
      ? listings.find((one) => isOnDisk(published.layout, role, one))
      : listings[0];
    return found === undefined ? [] : [[`${role}.json`, found.meta] as const];
  });
  return { ...meta, ...Object.fromEntries(seen) };
}

function isOnDisk(layout: RepositoryLayout, role: string, { meta }: LaterListing): boolean {
  const file = readUnverified(layout, 'targets', meta.version, role);
  return file !== undefined && isNamedBy(meta, file);
}

export interface SnapshotVerdict {
  /** An older snapshot lists a later file: hosts refuse the published snapshot. */
  readonly rollback: WritError | undefined;
  /**
   * Names a newer snapshot that lists a later file. This is not a problem by itself, because a signing that was killed
   * before its timestamp leaves one too.
   */
  readonly newer: string | undefined;
}

/** Compares the published snapshot with the verified ones on disk. */
export function judgePublishedSnapshot(published: PublishedSnapshot): SnapshotVerdict {
  const { version } = published.live.snapshot.signed;
  const all = [...readLaterListings(published)];
  const newerOf = ([role, listings]: (typeof all)[number]) => {
    const found = listings.find(({ snapshot }) => snapshot > version);
    return found === undefined ? [] : [{ role, ...found }];
  };
  const [newer] = all.flatMap(newerOf);
  return { rollback: findSnapshotRollback(published, all), newer: newer && newerText(newer, version) };
}

function newerText(
  { role, meta, snapshot }: LaterListing & { readonly role: string },
  version: number,
): string {
  const [name, other] = [snapshot, version].map((one) => metadataName('snapshot', one));
  return `${name} lists ${role} v${meta.version} and is newer than the published ${other}: a signing was killed, or a stolen online key named the older one (writ refresh publishes the newest files)`;
}

/** @returns an error that names the published snapshot and an older one that lists a later version; undefined without one */
function findSnapshotRollback(
  published: PublishedSnapshot,
  later: readonly (readonly [role: string, listings: readonly LaterListing[]])[],
): WritError | undefined {
  const { version, meta } = published.live.snapshot.signed;
  const found = later.flatMap(([role, listings]) => {
    const older = listings.find(({ snapshot }) => snapshot < version);
    return older === undefined ? [] : [{ role, older }];
  });
  const [first] = found;
  if (first === undefined) return undefined;
  const { role, older } = first;
  const actual = listedFile(meta, role)?.version;
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
