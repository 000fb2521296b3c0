// The paths in a repository on disk, and the versions that exist there. Reads names and bytes. Verification is in
// repository-state, writing in repository-writer.
import * as fs from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import { type Digest, deltaPath, digestHex, targetPath } from '../../core/names.js';
import { roleFileName } from '../../core/tuf/delegations.js';
import {
  maxVersion,
  maxVersionAfterGap,
  parseVersion,
  reachableVersions,
} from '../../core/tuf/metadata-version.js';
import { versionPattern } from '../../core/tuf/tuf-metadata.js';
import { diskError, isTemporaryName } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';

export type RepositoryLayout = Readonly<ReturnType<typeof layoutOf>>;

/**
 * Builds the paths in a repository. Reads nothing, and throws nothing.
 * @param directory of the repository; it may be absent
 * @returns the paths, which begin with `directory`: of `/r`, for example `/r/metadata/timestamp.json` and the lock `/r/.lock`
 */
export function layoutOf(directory: string) {
  const metadata = join(directory, 'metadata');
  return {
    directory,
    metadata,
    targets: join(directory, 'targets'),
    lock: join(directory, '.lock'),
    /** The only metadata file that changes under its name. */
    timestamp: join(metadata, 'timestamp.json'),
  };
}

/** @param role a top-level or a delegated one. @returns `N.role.json`, or `timestamp.json` */
export function metadataName(role: string, version: number): string {
  return role === 'timestamp' ? 'timestamp.json' : `${version}.${roleFileName(role)}.json`;
}

/** A file of a release. */
export interface FilePlace {
  readonly kind: 'archive' | 'delta';
  readonly bundle: string;
  readonly channel: string;
  readonly digest: Digest;
}

/** @returns its path below targets/; the name contains the digest, so the content never changes */
export function pathOf({ kind, bundle, channel, digest }: FilePlace): string {
  const name = kind === 'archive' ? targetPath(bundle, channel) : deltaPath(bundle, channel);
  return join(dirname(name), `${digestHex(digest)}.${basename(name)}`);
}

/** @returns true for the names that pathOf gives to archives and deltas */
export function isReleaseFile(name: string): boolean {
  return name.endsWith('.tar.br') || name.endsWith('.delta');
}

const numbered = new RegExp(`^(${versionPattern})\\.(.+)\\.json$`);

/** @returns the versions of a role on disk, ascending, without any verification */
export function versionsOnDisk(layout: RepositoryLayout, role: string): number[] {
  const versions = listNames(layout.metadata).flatMap((name) => {
    const match = numbered.exec(name);
    return match?.[2] === roleFileName(role) ? (parseVersion(match[1]) ?? []) : [];
  });
  return versions.sort((a, b) => a - b);
}

/**
 * Omits versions that cannot be reached. Attack: a thief of a key signs a very high version number.
 * @param published the version that hosts see; 0 before they see any
 * @returns the versions of a role that may be published or are published, ascending
 */
export function reachableOnDisk(layout: RepositoryLayout, role: string, published: number): number[] {
  return reachableVersions(versionsOnDisk(layout, role), published);
}

/**
 * @param published as for reachableOnDisk
 * @returns one more than the highest of the published and the reachable versions, because readers use the highest one that
 *   verifies
 * @throws WritError REPOSITORY_INVALID where no version can follow, or a further version on disk would be above the next
 *   one
 */
export function nextVersionOf(layout: RepositoryLayout, role: string, published: number): number {
  const highest = Math.max(published, reachableOnDisk(layout, role, published).at(-1) ?? 0);
  if (highest >= maxVersion) throw noVersionFollows(role, published);
  const next = highest + 1;
  // The versions right above the next one would become reachable with it, and readers would prefer them.
  if (next <= maxVersionAfterGap || !versionsOnDisk(layout, role).includes(next + 1)) return next;
  const name = metadataName(role, next + 1);
  throw new WritError('REPOSITORY_INVALID', `${name} is above the next version of ${role}`, {
    facts: { role, version: next + 1 },
    hint: 'A stolen key may have signed it: `writ repo gc` removes it.',
  });
}

/**
 * @param version the published version, which is the highest possible or too near to it
 * @returns the error REPOSITORY_INVALID; its hint has the command that replaces the keys of the role
 */
export function noVersionFollows(role: string, version: number): WritError {
  const keys = role === 'snapshot' || role === 'timestamp' ? [role] : ['snapshot'];
  const also = role === 'targets' ? ['targets', ...keys] : keys;
  const flags = also.map((name) => `--replace ${name}=NEW.pub`).join(' ');
  return new WritError('REPOSITORY_INVALID', `no version can follow the published ${role}`, {
    facts: { role, version },
    hint: `A thief signed it. Replace keys with \`writ root rotate ${flags}\`: hosts then forget the version numbers.`,
  });
}

/** @returns the roles with numbered files on disk, also those that no file lists any more */
export function rolesOnDisk(layout: RepositoryLayout): string[] {
  const names = listNames(layout.metadata).flatMap((name) => numbered.exec(name)?.[2] ?? []);
  // Publishers of Writ give no name that needs encoding.
  return [...new Set(names)].filter((name) => roleFileName(name) === name);
}

/**
 * Reads a file of the repository. Any user with write permission may have created it.
 * @returns undefined where it is missing
 * @throws WritError REPOSITORY_INVALID where it is not a regular file, or is too large; DISK_*
 */
export function readRepositoryFile(path: string, maxBytes: number): Buffer | undefined {
  const verdict = readSmallFile(path, { maxBytes, links: 'refused' });
  if (verdict.kind === 'absent') return undefined;
  if (verdict.kind === 'read') return verdict.bytes;
  // A missing permission of this machine is not a fault of the repository.
  const { cause, why } = verdict;
  if (cause !== undefined && why !== 'ELOOP') throw diskError(cause, { op: 'repo.read', path });
  throw new WritError('REPOSITORY_INVALID', `${path} cannot be read: ${why}`, { facts: { path, why } });
}

/** Reads one file of many, so that the refusal of one does not hide the others. @throws WritError DISK_* of this machine */
export function readUnlessRefused<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isWritError(error) && !error.code.startsWith('DISK_')) return undefined;
    throw error;
  }
}

/** @returns paths below the repository of temporary files, of a running writer or of a killed one */
export function leftoversIn(layout: RepositoryLayout): string[] {
  const bundles = listNames(layout.targets).map((name) => join(layout.targets, name));
  return [layout.directory, layout.metadata, ...bundles].flatMap((directory) =>
    listNames(directory)
      .filter(isTemporaryName)
      .map((name) => relative(layout.directory, join(directory, name))),
  );
}

/**
 * Removes the temporary files of a killed writer. The caller must hold the lock. @returns their paths below the repository
 */
export function removeLeftovers(layout: RepositoryLayout): string[] {
  const leftovers = leftoversIn(layout);
  for (const path of leftovers) fs.rmSync(join(layout.directory, path), { force: true });
  return leftovers;
}

/** @returns the sorted names in a directory; none where it is missing. @throws WritError DISK_* */
export function listNames(directory: string): string[] {
  try {
    return fs.readdirSync(directory).sort();
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return [];
    throw diskError(error, { op: 'repo.list', path: directory });
  }
}

/** @returns the error REPOSITORY_INVALID for a path without metadata */
export function noRepository(path: string): WritError {
  return new WritError('REPOSITORY_INVALID', `${path} is not a repository`, {
    facts: { path },
    hint: 'Create one with `writ init`, or correct --repository.',
  });
}
