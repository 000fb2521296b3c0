// Where things are in a repository on disk, and which versions are there.
// Reads names and bytes; what they are worth is repository-state's to say, and writing is repository-writer's.
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

/** @param directory of the repository; nothing has to be there yet */
export function layoutOf(directory: string) {
  const metadata = join(directory, 'metadata');
  return {
    directory,
    metadata,
    targets: join(directory, 'targets'),
    lock: join(directory, '.lock'),
    /** The one metadata file that changes under its name. */
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

/** @returns where it is below targets/: its digest is in its name, so it never changes */
export function pathOf({ kind, bundle, channel, digest }: FilePlace): string {
  const name = kind === 'archive' ? targetPath(bundle, channel) : deltaPath(bundle, channel);
  return join(dirname(name), `${digestHex(digest)}.${basename(name)}`);
}

/** @returns true for names as pathOf gives them to archives and deltas */
export function isReleaseFile(name: string): boolean {
  return name.endsWith('.tar.br') || name.endsWith('.delta');
}

const numbered = new RegExp(`^(${versionPattern})\\.(.+)\\.json$`);

/** @returns the versions of a role that are there, ascending; whatever wrote them */
export function versionsOnDisk(layout: RepositoryLayout, role: string): number[] {
  const versions = listNames(layout.metadata).flatMap((name) => {
    const match = numbered.exec(name);
    return match?.[2] === roleFileName(role) ? (parseVersion(match[1]) ?? []) : [];
  });
  return versions.sort((a, b) => a - b);
}

/**
 * A version that cannot be reached is left out, because a thief of a key may have signed any number.
 * @param published the version that hosts see; 0 before they see any
 * @returns the versions of a role that may be published or are published, ascending
 */
export function reachableOnDisk(layout: RepositoryLayout, role: string, published: number): number[] {
  return reachableVersions(versionsOnDisk(layout, role), published);
}

/**
 * @param published as for reachableOnDisk
 * @returns the version above the published one and each reachable one: readers take the highest that verifies
 * @throws WritError REPOSITORY_INVALID where no version can follow, or a further version on disk would be above the next one
 */
export function nextVersionOf(layout: RepositoryLayout, role: string, published: number): number {
  const highest = Math.max(published, reachableOnDisk(layout, role, published).at(-1) ?? 0);
  if (highest >= maxVersion) throw noVersionFollows(role, published);
  const next = highest + 1;
  // The versions right above the next one would be read with it, and hide it.
  if (next <= maxVersionAfterGap || !versionsOnDisk(layout, role).includes(next + 1)) return next;
  const name = metadataName(role, next + 1);
  throw new WritError('REPOSITORY_INVALID', `${name} is above the next version of ${role}`, {
    facts: { role, version: next + 1 },
    hint: 'A stolen key may have signed it: `writ repo gc` removes it.',
  });
}

export function noVersionFollows(role: string, version: number): WritError {
  const keys = role === 'snapshot' || role === 'timestamp' ? [role] : ['snapshot'];
  const also = role === 'targets' ? ['targets', ...keys] : keys;
  const flags = also.map((name) => `--replace ${name}=NEW.pub`).join(' ');
  return new WritError('REPOSITORY_INVALID', `no version can follow the published ${role}`, {
    facts: { role, version },
    hint: `A thief signed it. Replace keys with \`writ root rotate ${flags}\`: hosts then forget the version numbers.`,
  });
}

/** @returns names of the roles that have numbered files there, also those of roles that no file lists any more */
export function rolesOnDisk(layout: RepositoryLayout): string[] {
  const names = listNames(layout.metadata).flatMap((name) => numbered.exec(name)?.[2] ?? []);
  // A name that needs encoding is not one that our publisher gave.
  return [...new Set(names)].filter((name) => roleFileName(name) === name);
}

/**
 * Reads a file of the repository. Each user with write permission may have put it there.
 * @returns undefined when it is not there
 * @throws WritError REPOSITORY_INVALID for what is no regular file, or is too large; DISK_*
 */
export function readRepositoryFile(path: string, maxBytes: number): Buffer | undefined {
  const verdict = readSmallFile(path, { maxBytes, links: 'refused' });
  if (verdict.kind === 'absent') return undefined;
  if (verdict.kind === 'read') return verdict.bytes;
  // What this machine does not let us read says nothing about the repository.
  const { cause, why } = verdict;
  if (cause !== undefined && why !== 'ELOOP') throw diskError(cause, { op: 'repo.read', path });
  throw new WritError('REPOSITORY_INVALID', `${path} cannot be read: ${why}`, { facts: { path, why } });
}

/** For one file of many: what is wrong with it hides nothing of the others. @throws WritError DISK_* of this machine */
export function unlessRefused<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isWritError(error) && !error.code.startsWith('DISK_')) return undefined;
    throw error;
  }
}

/** @returns paths below the repository of what a writer has not finished: one that runs, or one that was killed */
export function leftoversIn(layout: RepositoryLayout): string[] {
  const bundles = listNames(layout.targets).map((name) => join(layout.targets, name));
  return [layout.directory, layout.metadata, ...bundles].flatMap((directory) =>
    listNames(directory)
      .filter(isTemporaryName)
      .map((name) => relative(layout.directory, join(directory, name))),
  );
}

/** What a killed writer left behind; only the holder of the lock may call this. @returns the paths below the repository */
export function removeLeftovers(layout: RepositoryLayout): string[] {
  const leftovers = leftoversIn(layout);
  for (const path of leftovers) fs.rmSync(join(layout.directory, path), { force: true });
  return leftovers;
}

/** @returns the names in a directory, sorted; none when it is not there. @throws WritError DISK_* */
export function listNames(directory: string): string[] {
  try {
    return fs.readdirSync(directory).sort();
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return [];
    throw diskError(error, { op: 'repo.list', path: directory });
  }
}

export function noRepository(path: string): WritError {
  return new WritError('REPOSITORY_INVALID', `${path} is not a repository`, {
    facts: { path },
    hint: 'Create one with `writ init`, or correct --repository.',
  });
}
