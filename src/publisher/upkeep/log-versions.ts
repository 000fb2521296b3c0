// Reads and verifies every retained version of root, targets and the delegated roles for the repository log. A version
// counts only if a signing authority of that time signed it: a root of the chain, or a verified delegation. A file that
// does not verify becomes a problem and never an act. Reads within bounds; writes nothing.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { defaultMetadataLimits as limits } from '../../core/limits.js';
import {
  type Authority,
  delegationAuthority,
  requireThreshold,
  rootAuthority,
} from '../../core/tuf/metadata-checks.js';
import { countValidSigners } from '../../core/tuf/signature-schemes.js';
import { matchesPath } from '../../core/tuf/target-search.js';
import { trustFirstRoot, trustNextRoot } from '../../core/tuf/trusted-set.js';
import { type DelegatedRole, type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import { delegatedRolesOf } from '../repository/delegated-files.js';
import {
  metadataName,
  noRepository,
  readRepositoryFile,
  versionsOnDisk,
} from '../repository/repository-layout.js';
import { readOwnRoot } from '../repository/repository-state.js';
import { compareSigning, type VersionRestart } from '../repository/version-restarts.js';
import {
  describeVersion,
  type LogReading,
  type LogVersion,
  type NamedFiles,
  recordProblem,
  requireNamed,
} from './log-reading.js';

/**
 * Reads the chain of roots from the first trusted root.
 * @throws WritError REPOSITORY_INVALID without a first root
 */
export function readLogRoots(reading: LogReading, keysDirectory: string | undefined): LogVersion<'root'>[] {
  const { layout } = reading;
  const first = join(layout.metadata, metadataName('root', 1));
  const anchor = readOwnRoot(keysDirectory) ?? readRepositoryFile(first, limits.maxRootBytes);
  if (anchor === undefined) throw noRepository(layout.directory);
  const roots: LogVersion<'root'>[] = [];
  let name = 'the first root';
  try {
    let set = trustFirstRoot(anchor);
    for (let rotation = 0; rotation <= limits.maxRootRotations; rotation += 1) {
      roots.push(describeVersion(set.root, rootAuthority(set.root, 'root'), set.root.signed));
      name = metadataName('root', set.root.signed.version + 1);
      const bytes = readRepositoryFile(join(layout.metadata, name), limits.maxRootBytes);
      if (bytes === undefined) break;
      set = trustNextRoot(set, bytes);
    }
  } catch (error) {
    if (roots.length === 0) throw error;
    recordProblem(reading, `metadata/${name}`, error);
  }
  return roots;
}

/** A signing authority that a role had at some time. */
export interface PastAuthority {
  readonly authority: Authority;
  /** The signed part that names the keys of the authority. */
  readonly signed: object;
  /** The delegation of a delegated role, with the paths that the role may list. */
  readonly delegated?: DelegatedRole;
}

/** @returns the signing authorities of targets, oldest first */
export function listTargetsAuthorities(roots: readonly LogVersion<'root'>[]): PastAuthority[] {
  return roots.map(({ file }) => ({ authority: rootAuthority(file, 'targets'), signed: file.signed }));
}

/** @returns the signing authorities of each delegated role, oldest first; an unchanged delegation occurs once */
export function listTeamAuthorities(
  targets: readonly LogVersion<'targets'>[],
): ReadonlyMap<string, PastAuthority[]> {
  const teams = new Map<string, { readonly seen: string; readonly past: PastAuthority }[]>();
  for (const { file } of targets) {
    for (const delegated of delegatedRolesOf(file)) {
      const known = teams.get(delegated.name) ?? [];
      const seen = JSON.stringify(delegated);
      if (known.at(-1)?.seen === seen) continue;
      const authority = delegationAuthority(file, delegated);
      known.push({ seen, past: { authority, signed: file.signed, delegated } });
      teams.set(delegated.name, known);
    }
  }
  return new Map([...teams].map(([name, list]) => [name, list.map(({ past }) => past)]));
}

export interface RoleVersions {
  /** The verified versions, oldest first. */
  readonly versions: readonly LogVersion<'targets'>[];
  /** Absent where the versions never restarted. */
  readonly restart?: VersionRestart | undefined;
  /** The oldest version that was read; absent where none was read. */
  readonly first?: number;
  /** Why older versions are absent: `gone` were removed from the repository, `not-read` are beyond the bounds of the log. */
  readonly olderAre?: 'gone' | 'not-read';
  /** Missing versions between retained ones, at most `maxMissingNamed` for each gap. */
  readonly missing: readonly number[];
}

/** A longer gap is not a loss: a stolen key skipped these versions (adr/0073). */
const maxLostVersions = 10_000;
/** Equal to the longest gap, so that the count of a gap is its complete length. */
const maxMissingNamed = maxLostVersions;

export interface Vouching {
  readonly authorities: readonly PastAuthority[];
  /** The files that the retained snapshots list. */
  readonly named: NamedFiles;
  /** The restart of the role's versions. */
  readonly restart?: VersionRestart | undefined;
}

/** Reads the versions of a role from the newest to the oldest, within the bounds. */
export function readLogVersions(reading: LogReading, role: string, vouching: Vouching): RoleVersions {
  const onDisk = versionsOnDisk(reading.layout, role).reverse();
  const readVersions: number[] = [];
  const found: { readonly entry: LogVersion<'targets'>; readonly by: AuthorityRange }[] = [];
  for (const version of onDisk.slice(0, reading.maxVersions)) {
    const path = join(reading.layout.metadata, metadataName(role, version));
    if (!reading.take(sizeOf(path))) break;
    readVersions.push(version);
    const one = attempt(reading, path, role, () => readOne(path, { role, version, ...vouching }));
    if (one !== undefined) found.push(one);
  }
  const { restart } = vouching;
  found.sort((a, b) => compareSigning(restart, a.entry.version, b.entry.version));
  const versions = omitReplacedKeys(reading, role, found);
  const first = readVersions.at(-1);
  if (first === undefined)
    return { versions, restart, missing: [], ...(onDisk.length > 0 ? { olderAre: 'not-read' } : {}) };
  const olderAre = readVersions.length < onDisk.length ? 'not-read' : first > 1 ? 'gone' : undefined;
  return {
    versions,
    restart,
    first,
    missing: findMissingVersions(readVersions),
    ...(olderAre === undefined ? {} : { olderAre }),
  };
}

/** @param readVersions descending */
function findMissingVersions(readVersions: readonly number[]): number[] {
  const missing: number[] = [];
  for (const [index, version] of readVersions.entries()) {
    const older = readVersions[index + 1] ?? version - 1;
    // A stolen key skipped the versions between (adr/0073): they never existed.
    if (version - older > maxLostVersions) continue;
    for (let gone = version - 1; gone > older && missing.length < maxMissingNamed; gone -= 1)
      missing.push(gone);
  }
  return missing.reverse();
}

/** The indexes of the oldest and the newest authority that a file satisfies. */
interface AuthorityRange {
  readonly oldest: number;
  readonly newest: number;
}

interface Wanted extends Vouching {
  readonly role: string;
  readonly version: number;
}

function readOne(path: string, { role, version, authorities, named }: Wanted) {
  const bytes = readRepositoryFile(path, limits.maxTargetsBytes);
  if (bytes === undefined)
    throw new WritError('METADATA_MISSING', `${path} is not there`, { facts: { path } });
  const file = parseEnvelope(bytes, 'targets', role);
  if (file.signed.version !== version) {
    const facts = { role, expected: version, actual: file.signed.version };
    throw new WritError('METADATA_MIX', `${role}: the file contains version ${file.signed.version}`, {
      facts,
    });
  }
  if (authorities.length === 0) {
    const message = `${role}: no kept version of targets names its keys`;
    throw new WritError('SIGNATURE_WRONG_KEY', message, { facts: { role } });
  }
  const vouching = authorities.flatMap((past, index) => (isVouchedBy(file, past) ? [index] : []));
  const newest = vouching.at(-1);
  const past = newest === undefined ? undefined : authorities[newest];
  if (newest === undefined || past === undefined) throw explainRefusal(file, authorities);
  requireNamed(named, metadataName(role, version), file);
  const by: AuthorityRange = { oldest: vouching[0] ?? newest, newest };
  return { entry: describeVersion(file, past.authority, past.signed), by };
}

function isVouchedBy(file: ParsedFile<'targets'>, { authority, delegated }: PastAuthority): boolean {
  const { keys, role } = authority;
  const { signatures, signedBytes, signed } = file;
  if (countValidSigners({ keys, role, signatures, signedBytes }) < role.threshold) return false;
  return delegated === undefined || Object.keys(signed.targets).every((path) => matchesPath(delegated, path));
}

/** @returns the refusal under the current authority, which is the one that an operator knows */
function explainRefusal(file: ParsedFile<'targets'>, authorities: readonly PastAuthority[]): unknown {
  const last = authorities.at(-1);
  try {
    if (last !== undefined) requireThreshold(file, last.authority);
  } catch (error) {
    return error;
  }
  const facts = { role: file.name };
  return new WritError('DELEGATION_REFUSED', `${file.name} lists a path that is not its own`, { facts });
}

/**
 * Omits versions that are signed only by replaced keys although a successor key has signed an earlier version. Replaced
 * keys may be stolen.
 */
function omitReplacedKeys(
  reading: LogReading,
  role: string,
  found: readonly { readonly entry: LogVersion<'targets'>; readonly by: AuthorityRange }[],
): LogVersion<'targets'>[] {
  let since = 0;
  return found.flatMap(({ entry, by }) => {
    if (by.newest < since) {
      const message = `${role} version ${entry.version} is signed by keys that were replaced before it`;
      reading.problems.push({
        where: `metadata/${metadataName(role, entry.version)}`,
        code: 'SIGNATURE_WRONG_KEY',
        message,
      });
      return [];
    }
    since = Math.max(since, by.oldest);
    return [entry];
  });
}

function sizeOf(path: string): number {
  return fs.lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * @returns undefined for a file that does not verify, after its problem is recorded
 * @throws the error itself when it is not a WritError, or is a DISK_* error
 */
function attempt<T>(reading: LogReading, path: string, role: string, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const name = path.slice(reading.layout.metadata.length + 1) || role;
    recordProblem(reading, `metadata/${name}`, error);
    return undefined;
  }
}
