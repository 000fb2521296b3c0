// Every kept version of the roles that people sign, verified, for the log of a repository. A version counts when somebody
// vouches for it who is known to have been in charge: a root of the chain, or a verified delegation. What cannot be
// verified is named and never shown as an act. Reads within bounds; writes nothing.
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
  describe,
  type LogReading,
  type LogVersion,
  type NamedFiles,
  note,
  requireNamed,
} from './log-reading.js';

/**
 * The chain of roots from the first one on that is believed.
 * @throws WritError REPOSITORY_INVALID without even a first root
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
      roots.push(describe(set.root, rootAuthority(set.root, 'root'), set.root.signed));
      name = metadataName('root', set.root.signed.version + 1);
      const bytes = readRepositoryFile(join(layout.metadata, name), limits.maxRootBytes);
      if (bytes === undefined) break;
      set = trustNextRoot(set, bytes);
    }
  } catch (error) {
    if (roots.length === 0) throw error;
    note(reading, `metadata/${name}`, error);
  }
  return roots;
}

/** Somebody who was in charge of a role at some time. */
export interface InCharge {
  readonly authority: Authority;
  /** Where the names of its keys are written. */
  readonly signed: object;
  /** Of a delegated role: what it may speak of. */
  readonly delegated?: DelegatedRole;
}

/** @returns who was in charge of targets, oldest first */
export function chargeOfRoots(roots: readonly LogVersion<'root'>[]): InCharge[] {
  return roots.map(({ file }) => ({ authority: rootAuthority(file, 'targets'), signed: file.signed }));
}

/** @returns who was in charge of each delegated role, oldest first, each delegation once */
export function chargeOfTeams(targets: readonly LogVersion<'targets'>[]): ReadonlyMap<string, InCharge[]> {
  const teams = new Map<string, { readonly seen: string; readonly charge: InCharge }[]>();
  for (const { file } of targets) {
    for (const delegated of delegatedRolesOf(file)) {
      const known = teams.get(delegated.name) ?? [];
      const seen = JSON.stringify(delegated);
      if (known.at(-1)?.seen === seen) continue;
      const authority = delegationAuthority(file, delegated);
      known.push({ seen, charge: { authority, signed: file.signed, delegated } });
      teams.set(delegated.name, known);
    }
  }
  return new Map([...teams].map(([name, list]) => [name, list.map(({ charge }) => charge)]));
}

export interface RoleVersions {
  /** Those that verify, oldest first. */
  readonly versions: readonly LogVersion<'targets'>[];
  /** Left out where the versions never began again. */
  readonly restart?: VersionRestart | undefined;
  /** Oldest version that was read; left out where there is none. */
  readonly first?: number;
  /** Why nothing older is shown: removed from the repository, or beyond the bounds of one log. */
  readonly olderAre?: 'gone' | 'not-read';
  /** Versions that are not there though older and newer ones are; at most so many are named. */
  readonly missing: readonly number[];
}

/** More versions in a row were not lost. */
const maxLostVersions = 10_000;
/** As many as of one gap, so that the count of a gap is its whole length. */
const maxMissingNamed = maxLostVersions;

export interface Vouching {
  readonly charges: readonly InCharge[];
  /** What the kept snapshots name. */
  readonly named: NamedFiles;
  /** Of the role. */
  readonly restart?: VersionRestart | undefined;
}

/** Reads the versions of a role from the newest on, as far as the bounds go. */
export function readLogVersions(reading: LogReading, role: string, vouching: Vouching): RoleVersions {
  const onDisk = versionsOnDisk(reading.layout, role).reverse();
  const readVersions: number[] = [];
  const found: { readonly entry: LogVersion<'targets'>; readonly by: ChargeRange }[] = [];
  for (const version of onDisk.slice(0, reading.maxVersions)) {
    const path = join(reading.layout.metadata, metadataName(role, version));
    if (!reading.take(sizeOf(path))) break;
    readVersions.push(version);
    const one = attempt(reading, path, role, () => readOne(path, { role, version, ...vouching }));
    if (one !== undefined) found.push(one);
  }
  const { restart } = vouching;
  found.sort((a, b) => compareSigning(restart, a.entry.version, b.entry.version));
  const versions = inOrder(reading, role, found);
  const first = readVersions.at(-1);
  if (first === undefined)
    return { versions, restart, missing: [], ...(onDisk.length > 0 ? { olderAre: 'not-read' } : {}) };
  const olderAre = readVersions.length < onDisk.length ? 'not-read' : first > 1 ? 'gone' : undefined;
  return {
    versions,
    restart,
    first,
    missing: missingIn(readVersions),
    ...(olderAre === undefined ? {} : { olderAre }),
  };
}

/** @param readVersions descending */
function missingIn(readVersions: readonly number[]): number[] {
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

/** The oldest and the newest of those in charge who vouch for a file. */
interface ChargeRange {
  readonly oldest: number;
  readonly newest: number;
}

interface Wanted extends Vouching {
  readonly role: string;
  readonly version: number;
}

function readOne(path: string, { role, version, charges, named }: Wanted) {
  const bytes = readRepositoryFile(path, limits.maxTargetsBytes);
  if (bytes === undefined)
    throw new WritError('METADATA_MISSING', `${path} is not there`, { facts: { path } });
  const file = parseEnvelope(bytes, 'targets', role);
  if (file.signed.version !== version) {
    const facts = { role, expected: version, actual: file.signed.version };
    throw new WritError('METADATA_MIX', `${role}: the file says that it is version ${file.signed.version}`, {
      facts,
    });
  }
  if (charges.length === 0) {
    const message = `${role}: no kept version of targets names its keys`;
    throw new WritError('SIGNATURE_WRONG_KEY', message, { facts: { role } });
  }
  const vouching = charges.flatMap((charge, index) => (vouches(file, charge) ? [index] : []));
  const newest = vouching.at(-1);
  const charge = newest === undefined ? undefined : charges[newest];
  if (newest === undefined || charge === undefined) throw refusalOf(file, charges);
  requireNamed(named, metadataName(role, version), file);
  const by: ChargeRange = { oldest: vouching[0] ?? newest, newest };
  return { entry: describe(file, charge.authority, charge.signed), by };
}

function vouches(file: ParsedFile<'targets'>, { authority, delegated }: InCharge): boolean {
  const { keys, role } = authority;
  const { signatures, signedBytes, signed } = file;
  if (countValidSigners({ keys, role, signatures, signedBytes }) < role.threshold) return false;
  return delegated === undefined || Object.keys(signed.targets).every((path) => matchesPath(delegated, path));
}

/** In the words of whoever is in charge now. */
function refusalOf(file: ParsedFile<'targets'>, charges: readonly InCharge[]): unknown {
  const last = charges.at(-1);
  try {
    if (last !== undefined) requireThreshold(file, last.authority);
  } catch (error) {
    return error;
  }
  const facts = { role: file.name };
  return new WritError('DELEGATION_REFUSED', `${file.name} lists a path that is not its own`, { facts });
}

/**
 * Keys that were replaced may be stolen ones: behind a version that only their successors can have signed, they have
 * signed nothing that counts.
 */
function inOrder(
  reading: LogReading,
  role: string,
  found: readonly { readonly entry: LogVersion<'targets'>; readonly by: ChargeRange }[],
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

/** @returns undefined for a file that does not verify; the problem is noted. @throws what is no WritError, and DISK_* */
function attempt<T>(reading: LogReading, path: string, role: string, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const name = path.slice(reading.layout.metadata.length + 1) || role;
    note(reading, `metadata/${name}`, error);
    return undefined;
  }
}
