// Reads the repository on disk without verification: version and expiry of each role, and published files that are not in
// the snapshot yet. Used by health, metrics and the re-signing loop. Never writes.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { type ErrorCode, isSystemError, toWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { defaultMetadataLimits, metadataBytesByRole } from '../../core/limits.js';
import { parseVersion, reachableVersions, restartsTargets } from '../../core/tuf/metadata-version.js';
import { type TopLevelRole, versionPattern } from '../../core/tuf/tuf-metadata.js';
import { type FileStamp, isSameStamp, stampOf } from '../files/live-file.js';
import { parseRoleFile, type RoleFile } from '../files/role-file.js';
import { openServedFile } from '../files/served-file.js';

export interface RoleState {
  readonly version: number;
  readonly expiresMs: number;
  /** The recorded signing time, else the modification time; never after the expiry. */
  readonly signedAtMs: number;
  /** The recorded signing time. The modification time is not used, because it is not from the signer's clock. */
  readonly recordedAtMs?: number;
}

export interface ServedState {
  readonly roles: Readonly<Partial<Record<TopLevelRole, RoleState>>>;
  readonly problems: readonly {
    readonly role: TopLevelRole;
    readonly code: ErrorCode;
    readonly message: string;
  }[];
  /** Files of offline roles that are newer than their entries in the snapshot, from a publish without the online keys. */
  readonly pending: readonly string[];
  /** Files of delegated roles that the snapshot lists and the directory does not have: hosts accept no new release of the role. */
  readonly missing: readonly string[];
}

export interface ServedRepository {
  /** Reads the metadata only if timestamp.json or the directory changed, so that a health check can call it. */
  current(): ServedState;
  /** Reads the metadata now. */
  read(): ServedState;
  /** True when current() would read the metadata. Costs two stat calls. */
  changed(): boolean;
}

const maxBytesOf = metadataBytesByRole(defaultMetadataLimits);

/**
 * @param repository its directory; an unreadable file in it is a problem of the state, and never thrown
 * @returns current(), which reads the metadata only after a change; read(), which always does; changed()
 */
export function createRepositoryView(repository: string): ServedRepository {
  let known: { readonly stamps: MetadataStamps; readonly state: ServedState } | undefined;
  const read = (): ServedState => {
    // The stamps are taken before the reading, so that a change during it leads to another reading.
    const stamps = stampsOfMetadata(repository);
    const state = readState(repository);
    known = { stamps, state };
    return state;
  };
  const changed = (): boolean => known === undefined || !areSame(known.stamps, stampsOfMetadata(repository));
  return { read, changed, current: () => (known === undefined || changed() ? read() : known.state) };
}

interface MetadataStamps {
  readonly directory: FileStamp | undefined;
  readonly timestamp: FileStamp | undefined;
  /** The system error where the stamps cannot be taken. */
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

function readState(repository: string): ServedState {
  const problems: ServedState['problems'][number][] = [];
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
  // Excludes roles that the targets no longer delegate to, because every snapshot keeps them and no key signs for them.
  const waiting = ['targets', ...(targets?.delegated ?? [])];
  return {
    roles,
    problems,
    pending:
      snapshot === undefined
        ? []
        : pendingFiles(versions, { snapshot, roles: waiting, outdated: outdated.map(({ role }) => role) }),
    missing: snapshot === undefined ? [] : missingFiles(versions, snapshot, targets?.delegated ?? []),
  };
}

function missingFiles(
  versions: ReadonlyMap<string, readonly number[]>,
  snapshot: RoleFile,
  roles: readonly string[],
): string[] {
  return roles.flatMap((role) => {
    const listed = snapshot.meta.get(`${role}.json`);
    const file = `${encodeURIComponent(role)}.json`;
    return listed === undefined || versions.get(file)?.includes(listed) === true ? [] : [`${listed}.${file}`];
  });
}

/**
 * Finds roles with a published file that names none of the keys that the newest root lists. Hosts refuse such a file after
 * a rotation. A hint only: the signatures are not verified.
 */
function outdatedRoles(
  root: RoleFile | undefined,
  files: Readonly<Record<string, RoleFile | undefined>>,
): ServedState['problems'][number][] {
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
    const { version, expiresMs, signedAtMs: recordedAtMs } = file;
    return { file, state: { version, expiresMs, signedAtMs, ...given({ recordedAtMs }) } };
  } finally {
    fs.closeSync(opened.descriptor);
  }
}

function metadataNames(repository: string): string[] {
  try {
    return fs.readdirSync(join(repository, 'metadata'));
  } catch (error) {
    // The missing roles are reported as problems.
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

/** @returns the newest file of each role that a refresh could publish, without versions that cannot be reached */
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
