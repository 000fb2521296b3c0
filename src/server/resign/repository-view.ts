// What the repository on disk says of itself: version and expiry of each role, and what was published but is
// not in the snapshot yet. Health, metrics and the re-signing loop go by it; it never writes.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { type ErrorCode, isSystemError, toWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { defaultMetadataLimits, metadataBytesByRole } from '../../core/limits.js';
import { parseVersion, reachableVersions, restartsTargets } from '../../core/tuf/metadata-version.js';
import { type TopLevelRole, versionPattern } from '../../core/tuf/tuf-metadata.js';
import { isSameStamp, type Stamp, stampOf } from '../files/live-file.js';
import { parseRoleFile, type RoleFile } from '../files/role-file.js';
import { openServedFile } from '../files/served-file.js';

export interface RoleState {
  readonly version: number;
  readonly expiresMs: number;
  /** As the file says, else when it was written; never after its expiry. */
  readonly signedAtMs: number;
  /** As the file says; a time of the file system tells nothing of the signer's clock. */
  readonly saidAtMs?: number;
}

export interface RepositoryState {
  readonly roles: Readonly<Partial<Record<TopLevelRole, RoleState>>>;
  readonly problems: readonly {
    readonly role: TopLevelRole;
    readonly code: ErrorCode;
    readonly message: string;
  }[];
  /** Files of offline roles that are newer than the snapshot knows: a publish without the online keys. */
  readonly pending: readonly string[];
}

export interface RepositoryView {
  /** Reads the metadata again only when timestamp.json or the directory changed: cheap enough for a probe. */
  current(): RepositoryState;
  /** Reads the metadata now. */
  read(): RepositoryState;
  /** True when current() would read. One stat of two. */
  changed(): boolean;
}

const maxBytesOf = metadataBytesByRole(defaultMetadataLimits);

/** @param repository its directory; what cannot be read in it is a problem of the state, never thrown */
export function createRepositoryView(repository: string): RepositoryView {
  let known: { readonly stamps: MetadataStamps; readonly state: RepositoryState } | undefined;
  const read = (): RepositoryState => {
    // Taken before the reading: what changes meanwhile is read again next time.
    const stamps = stampsOfMetadata(repository);
    const state = readState(repository);
    known = { stamps, state };
    return state;
  };
  const changed = (): boolean => known === undefined || !areSame(known.stamps, stampsOfMetadata(repository));
  return { read, changed, current: () => (known === undefined || changed() ? read() : known.state) };
}

interface MetadataStamps {
  readonly directory: Stamp | undefined;
  readonly timestamp: Stamp | undefined;
  /** Why they cannot be taken. */
  readonly errorCode?: string | undefined;
}

function stampsOfMetadata(repository: string): MetadataStamps {
  const metadata = join(repository, 'metadata');
  try {
    return { directory: stampOf(metadata), timestamp: stampOf(join(metadata, 'timestamp.json')) };
  } catch (error) {
    if (isSystemError(error)) return { directory: undefined, timestamp: undefined, errorCode: error.code };
    throw error;
  }
}

function areSame(one: MetadataStamps, other: MetadataStamps): boolean {
  return (
    one.errorCode === other.errorCode &&
    isSameStamp(one.timestamp, other.timestamp) &&
    isSameStamp(one.directory, other.directory)
  );
}

function readState(repository: string): RepositoryState {
  const problems: RepositoryState['problems'][number][] = [];
  const roles: Partial<Record<TopLevelRole, RoleState>> = {};
  const load = (role: TopLevelRole, name: string | undefined): RoleFile | undefined => {
    try {
      const { file, state } = loadRole(repository, role, name ?? `N.${role}.json`);
      roles[role] = state;
      return file;
    } catch (error) {
      const { code, message } = toWritError(error);
      problems.push({ role, code: code === 'INTERNAL' ? 'DISK_FAILED' : code, message });
      return undefined;
    }
  };
  const versions = versionsByFile(metadataNames(repository));
  const newestRoot = versions.get('root.json')?.reduce((highest, next) => Math.max(highest, next));
  const root = load('root', newestRoot === undefined ? undefined : `${newestRoot}.root.json`);
  const timestamp = load('timestamp', 'timestamp.json');
  const snapshot = load('snapshot', numbered(timestamp, 'snapshot'));
  const targets = load('targets', numbered(snapshot, 'targets'));
  const outdated = outdatedRoles(root, { timestamp, snapshot, targets });
  problems.push(...outdated);
  // A role that the targets no longer delegate to stays in every snapshot, and nobody signs for it any more.
  const waiting = ['targets', ...(targets?.delegated ?? [])];
  return {
    roles,
    problems,
    pending:
      snapshot === undefined
        ? []
        : pendingFiles(versions, { snapshot, roles: waiting, outdated: outdated.map(({ role }) => role) }),
  };
}

/**
 * After a rotation: what is live names none of the keys that the newest root gives the role, and hosts refuse it.
 * A hint only; who signed is for hosts to verify.
 */
function outdatedRoles(
  root: RoleFile | undefined,
  files: Readonly<Record<string, RoleFile | undefined>>,
): RepositoryState['problems'][number][] {
  return Object.entries(files).flatMap(([role, file]) => {
    const listed = root?.keyIds.get(role);
    if (listed === undefined || file === undefined || listed.some((id) => file.signedBy.has(id))) return [];
    const message = `${role} is signed by keys that the root no longer lists`;
    return [{ role: role as TopLevelRole, code: 'SIGNATURE_WRONG_KEY', message }];
  });
}

function numbered(parent: RoleFile | undefined, role: TopLevelRole): string | undefined {
  const version = parent?.meta.get(`${role}.json`);
  return version === undefined ? undefined : `${version}.${role}.json`;
}

function loadRole(
  repository: string,
  role: TopLevelRole,
  name: string,
): { readonly file: RoleFile; readonly state: RoleState } {
  const opened = openServedFile(repository, `metadata/${name}`);
  if (opened === undefined) {
    throw new WritError('METADATA_MISSING', `metadata/${name} is not there`, { facts: { role, name } });
  }
  try {
    if (opened.length > maxBytesOf[role]) {
      const facts = { expected: maxBytesOf[role], actual: opened.length, role };
      throw new WritError('METADATA_MALFORMED', `metadata/${name} is too long`, { facts });
    }
    const file = parseRoleFile(fs.readFileSync(opened.descriptor), role);
    const signedAtMs = Math.min(file.signedAtMs ?? opened.modifiedMs, file.expiresMs);
    const { version, expiresMs, signedAtMs: saidAtMs } = file;
    return { file, state: { version, expiresMs, signedAtMs, ...given({ saidAtMs }) } };
  } finally {
    fs.closeSync(opened.descriptor);
  }
}

function metadataNames(repository: string): string[] {
  try {
    return fs.readdirSync(join(repository, 'metadata'));
  } catch (error) {
    // The roles that are then missing say what is wrong.
    if (isSystemError(error)) return [];
    throw error;
  }
}

const versionedFile = new RegExp(`^(${versionPattern})\\.([^.].*\\.json)$`);

interface PublishedVersions {
  readonly snapshot: RoleFile;
  /** Roles with files that may wait. */
  readonly roles: readonly string[];
  /** Roles with keys that the root no longer lists. */
  readonly outdated: readonly string[];
}

/** The newest file of each role that a refresh could publish; a version that is not reachable is left out. */
function pendingFiles(
  versions: ReadonlyMap<string, readonly number[]>,
  { snapshot, roles, outdated }: PublishedVersions,
): string[] {
  return roles.flatMap((role) => {
    const file = `${encodeURIComponent(role)}.json`;
    const listed = snapshot.meta.get(`${role}.json`) ?? snapshot.restartedAfter.get(role) ?? 0;
    const isRestarted = role === 'targets' && restartsTargets(outdated, listed);
    const published = isRestarted ? 0 : listed;
    const onDisk = [...(versions.get(file) ?? [])].sort((a, b) => a - b);
    const version = reachableVersions(onDisk, published).at(-1) ?? 0;
    return version > published ? [`${version}.${file}`] : [];
  });
}

function versionsByFile(names: readonly string[]): Map<string, number[]> {
  const versions = new Map<string, number[]>();
  for (const file of names) {
    const [, digits, name = ''] = versionedFile.exec(file) ?? [];
    const version = parseVersion(digits);
    if (version === undefined) continue;
    const known = versions.get(name);
    if (known === undefined) versions.set(name, [version]);
    else known.push(version);
  }
  return versions;
}
