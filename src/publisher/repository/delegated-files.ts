// The files of delegated roles in a repository: the published ones, and newer ones that wait for publication. A file counts
// if keys that the delegating targets name have signed it. A waiting file must list only paths of its role.
import { join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import { defaultMetadataLimits as limits } from '../../core/limits.js';
import {
  delegationAuthority,
  isNamedBy,
  requireDigests,
  requireThreshold,
  requireVersion,
} from '../../core/tuf/metadata-checks.js';
import { matchesPath } from '../../core/tuf/target-search.js';
import {
  type DelegatedRole,
  type MetaFile,
  type ParsedFile,
  parseEnvelope,
} from '../../core/tuf/tuf-metadata.js';
import type { IgnoredFile } from './ignored-file.js';
import {
  metadataName,
  type RepositoryLayout,
  reachableOnDisk,
  readRepositoryFile,
  readUnlessRefused,
} from './repository-layout.js';
import { listedFile, publishedVersion, type VersionRestarts } from './version-restarts.js';

/** The newest file of each role that has one, by role name. */
export type DelegatedFiles = ReadonlyMap<string, ParsedFile<'targets'>>;

type Meta = Readonly<Record<string, MetaFile>>;

/**
 * The number of newer files of one role that are read. Attack: a user with write permission stores millions of files, each
 * with the largest allowed size.
 */
const maxNewerFiles = 64;

/** @returns the roles that targets delegate to, in the order of the search of a client */
export function delegatedRolesOf(targets: ParsedFile<'targets'>): readonly DelegatedRole[] {
  return targets.signed.delegations?.roles ?? [];
}

/** @returns the delegated files that a snapshot lists and the delegation of the targets verifies, without damaged ones */
export function readLiveDelegated(
  layout: RepositoryLayout,
  meta: Meta,
  targets: ParsedFile<'targets'>,
): DelegatedFiles {
  return readNamedFiles(layout, targets, (role) => listedFile(meta, role));
}

/** @returns the last published file of each role with restarted versions that no snapshot has listed since */
export function readRestartedFiles(
  layout: RepositoryLayout,
  { meta, restarts }: ListedVersions,
  targets: ParsedFile<'targets'>,
): DelegatedFiles {
  return readNamedFiles(layout, targets, (role) =>
    listedFile(meta, role) === undefined ? restarts.get(role) : undefined,
  );
}

function readNamedFiles(
  layout: RepositoryLayout,
  targets: ParsedFile<'targets'>,
  metaOfRole: (role: string) => MetaFile | undefined,
): DelegatedFiles {
  const files = new Map<string, ParsedFile<'targets'>>();
  for (const role of delegatedRolesOf(targets)) {
    const named = metaOfRole(role.name);
    const file = named && readUnlessRefused(() => readNewer(layout, targets, role, named.version));
    if (named !== undefined && file !== undefined && isNamedBy(named, file)) files.set(role.name, file);
  }
  return files;
}

/** What a snapshot lists, and the roles with restarted versions. */
interface ListedVersions {
  readonly meta: Meta;
  readonly restarts: VersionRestarts;
}

/** @returns for each role the newest file that may be published, and the newer files that may not */
export function findNewestDelegated(
  layout: RepositoryLayout,
  listed: ListedVersions,
  targets: ParsedFile<'targets'>,
): { readonly delegated: DelegatedFiles; readonly ignored: readonly IgnoredFile[] } {
  const delegated = new Map<string, ParsedFile<'targets'>>(readLiveDelegated(layout, listed.meta, targets));
  const ignored: IgnoredFile[] = [];
  for (const role of delegatedRolesOf(targets)) {
    const live = publishedVersion(listed, role.name);
    const read = (version: number) => readWaiting(layout, targets, role, version);
    const newest = findNewest(layout, role.name, live, read);
    if (newest.file !== undefined) delegated.set(role.name, newest.file);
    ignored.push(...newest.ignored);
  }
  return { delegated, ignored };
}

/**
 * @param read throws the reason why hosts would refuse the version
 * @returns the newest file above a version that may be published, and the newer ones that may not; no file where more of
 *   these are newer than are read
 * @throws WritError DISK_*
 */
export function findNewest(
  layout: RepositoryLayout,
  role: string,
  above: number,
  read: (version: number) => ParsedFile<'targets'>,
): { readonly file?: ParsedFile<'targets'>; readonly ignored: readonly IgnoredFile[] } {
  const ignored: IgnoredFile[] = [];
  const newer = reachableOnDisk(layout, role, above).filter((version) => version > above);
  for (const version of newer.reverse().slice(0, maxNewerFiles)) {
    try {
      return { file: read(version), ignored };
    } catch (error) {
      if (!isWritError(error) || error.code.startsWith('DISK_')) throw error;
      ignored.push({ name: metadataName(role, version), cause: error });
    }
  }
  return { ignored };
}

/** @returns the version that a snapshot lists for a role; 0 without an entry, because no host has seen the role then */
export function versionIn(meta: Meta, role: string): number {
  return listedFile(meta, role)?.version ?? 0;
}

/**
 * Reads one file of a delegated role under the keys of its delegator. Hosts ignore entries outside the paths of the role, which
 * a published file has after its paths were narrowed.
 * @throws WritError METADATA_MISSING, METADATA_MALFORMED, SIGNATURE_*, DELEGATION_REFUSED
 */
export function readDelegatedFile(
  layout: RepositoryLayout,
  delegator: ParsedFile<'targets'>,
  role: DelegatedRole,
  version: number,
): ParsedFile<'targets'> {
  const name = metadataName(role.name, version);
  const bytes = readRepositoryFile(join(layout.metadata, name), limits.maxTargetsBytes);
  if (bytes === undefined) {
    const facts = { role: role.name, name };
    throw new WritError('METADATA_MISSING', `the repository has no ${name}`, { facts });
  }
  const file = parseEnvelope(bytes, 'targets', role.name);
  requireThreshold(file, delegationAuthority(delegator, role));
  requireNoDelegations(file, role);
  return file;
}

/**
 * Reads the file of a role that a snapshot lists.
 * @throws WritError as readDelegatedFile; METADATA_MIX where the file differs from the listed one
 */
export function readListedFile(
  layout: RepositoryLayout,
  delegator: ParsedFile<'targets'>,
  role: DelegatedRole,
  meta: MetaFile,
): ParsedFile<'targets'> {
  const file = readDelegatedFile(layout, delegator, role, meta.version);
  requireDigests(role.name, meta, file.bytes);
  requireVersion(role.name, meta, file.signed.version);
  return file;
}

/** A listed file of a team that hosts cannot read, or refuse. */
export interface RefusedListing {
  readonly role: string;
  /** As `2.dns-team.json`. */
  readonly name: string;
  readonly cause: WritError;
  /** The keys of the team changed, and the team has not signed since. */
  readonly hasOtherKeys: boolean;
}

/** @returns by role the files that a snapshot lists and that hosts refuse under these targets */
export function findRefusedListings(
  layout: RepositoryLayout,
  meta: Meta,
  targets: ParsedFile<'targets'>,
): ReadonlyMap<string, RefusedListing> {
  const found = new Map<string, RefusedListing>();
  for (const role of delegatedRolesOf(targets)) {
    const listed = listedFile(meta, role.name);
    if (listed === undefined) continue;
    try {
      readListedFile(layout, targets, role, listed);
    } catch (error) {
      if (!isWritError(error) || error.code.startsWith('DISK_')) throw error;
      const name = metadataName(role.name, listed.version);
      const hasOtherKeys = error.code.startsWith('SIGNATURE_');
      found.set(role.name, { role: role.name, name, cause: error, hasOtherKeys });
    }
  }
  return found;
}

/** @throws WritError as readDelegatedFile; METADATA_MIX for a file of another version */
function readNewer(
  layout: RepositoryLayout,
  delegator: ParsedFile<'targets'>,
  role: DelegatedRole,
  version: number,
): ParsedFile<'targets'> {
  const file = readDelegatedFile(layout, delegator, role, version);
  requireOwnVersion(file, version);
  return file;
}

/** @throws WritError as readNewer; DELEGATION_REFUSED for entries outside the paths of the role */
function readWaiting(...reading: Parameters<typeof readNewer>): ParsedFile<'targets'> {
  const file = readNewer(...reading);
  requireOwnPaths(file, reading[2]);
  return file;
}

/** A copy of an older file under a newer name is not newer. @throws WritError METADATA_MIX */
export function requireOwnVersion({ name, signed }: ParsedFile<'targets'>, version: number): void {
  if (signed.version === version) return;
  throw new WritError('METADATA_MIX', `${metadataName(name, version)} contains version ${signed.version}`, {
    facts: { role: name, expected: version, actual: signed.version },
  });
}

/** Hosts ask this role only for its own paths. Other entries are a mistake of the team, or the work of a thief. */
function requireOwnPaths({ signed }: ParsedFile<'targets'>, role: DelegatedRole): void {
  const foreign = Object.keys(signed.targets).find((path) => !matchesPath(role, path));
  if (foreign === undefined) return;
  throw new WritError('DELEGATION_REFUSED', `${role.name} lists ${foreign}, which is not its path`, {
    facts: { role: role.name, target: foreign },
  });
}

function requireNoDelegations({ signed }: ParsedFile<'targets'>, role: DelegatedRole): void {
  const further = signed.delegations?.roles[0]?.name;
  if (further === undefined) return;
  throw new WritError('DELEGATION_REFUSED', `${role.name} delegates further, to ${further}`, {
    facts: { role: role.name, to: further },
  });
}
