// `writ repo gc`: finds the files that no metadata in use refers to. Every root stays, and so do the published state,
// waiting files and the last versions of each role, with every archive that these list. A client that has just read the
// timestamp therefore still finds each file that it leads to. Files with unknown names stay.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { orUndefined } from '../../core/errors.js';
import { parseReleaseInfo } from '../../core/release/release.js';
import { listedRole, type TargetFile } from '../../core/tuf/tuf-metadata.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Clock } from '../../platform/time/clock.js';
import { deltasOf } from '../repository/release-files.js';
import {
  layoutOf,
  leftoversIn,
  listNames,
  metadataName,
  pathOf,
  type RepositoryLayout,
  reachableOnDisk,
  versionsOnDisk,
} from '../repository/repository-layout.js';
import { type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import { type LockWait, withRepository } from '../repository/repository-writer.js';
import { readLaterListings } from '../repository/seen-files.js';
import { readUnverified } from '../repository/unverified-metadata.js';

export interface CollectOptions {
  readonly repository: string;
  /** The number of newest versions of each role that stay, including the published one; at least 1. */
  readonly keep: number;
  /** A file that was superseded or written less than this time ago stays, because a client may still read it. */
  readonly graceMs: number;
  readonly clock: Clock;
}

export type Collectable = Readonly<ReturnType<typeof collectable>>;

/**
 * @returns the files that a collection would remove, in the order of removal: a referring file before the file that it
 *   refers to
 * @throws WritError REPOSITORY_INVALID, DISK_*
 */
export function planCollection(options: CollectOptions): readonly Collectable[] {
  const state = readRepositoryState(layoutOf(options.repository));
  const kept = keptVersions(state, options);
  const { layout } = state;
  // The lock decides whether these belong to a running writer. removeCollected holds it.
  const leftovers = leftoversIn(layout).map((path) => collectable(layout, 'leftover', path));
  return [...collectMetadata(layout, kept), ...collectArchives(layout, kept, options), ...leftovers];
}

/**
 * Removes the planned files that may still be removed, under the repository's lock.
 * @param planned the plan that a person confirmed; no other file is removed
 * @returns the removed files
 * @throws WritError REPOSITORY_LOCKED, REPOSITORY_INVALID, DISK_*
 */
export async function removeCollected(
  planned: readonly Collectable[],
  options: CollectOptions & LockWait & { readonly durableFs: DurableFs },
): Promise<readonly Collectable[]> {
  return withRepository({ ...options, holder: 'gc' }, async ({ layout }, leftovers) => {
    const seen = new Set(planned.map(({ path }) => path));
    const now = planCollection(options).filter(({ path }) => seen.has(path));
    const directories = new Set<string>();
    for (const { path } of now) {
      const whole = join(layout.directory, path);
      options.durableFs.removeTree('repo.gc', whole);
      directories.add(join(whole, '..'));
    }
    for (const directory of directories) options.durableFs.flushDirectory('repo.gc:flush', directory);
    return [...now, ...planned.filter(({ path }) => leftovers.includes(path))];
  });
}

/** The versions that stay, by role. The files of a role that is not in this map are never removed. */
type KeptVersions = ReadonlyMap<string, ReadonlySet<number>>;

function keptVersions(state: RepositoryState, options: CollectOptions): KeptVersions {
  const { layout, live } = state;
  const snapshots = lastVersions(layout, 'snapshot', live.snapshot.signed.version, options);
  const kept = new Map<string, Set<number>>([['snapshot', snapshots]]);
  const seen = newestSeenFiles(state);
  for (const { snapshot } of seen) snapshots.add(snapshot);
  for (const [name, { version }] of Object.entries(live.snapshot.signed.meta)) {
    const role = listedRole(name);
    kept.set(role, lastVersions(layout, role, version, options));
  }
  for (const version of snapshots) {
    const snapshot = readUnverified(layout, 'snapshot', version);
    for (const [name, meta] of Object.entries(snapshot?.signed.meta ?? {})) {
      kept.get(listedRole(name))?.add(meta.version);
    }
  }
  for (const { role, version } of seen) {
    const versions = kept.get(role) ?? new Set(versionsOnDisk(layout, role));
    kept.set(role, versions.add(version));
  }
  return kept;
}

/**
 * Attack: a thief of the online keys publishes snapshots that list older files. The snapshot that lists the newest file of a role is then
 * the only evidence that hosts have seen it, and that its serials are in use.
 */
function newestSeenFiles(state: RepositoryState) {
  return [...readLaterListings(state)].flatMap(([role, [newest]]) =>
    newest === undefined ? [] : [{ role, version: newest.meta.version, snapshot: newest.snapshot }],
  );
}

function lastVersions(
  layout: RepositoryLayout,
  role: string,
  liveVersion: number,
  { keep, graceMs, clock }: CollectOptions,
): Set<number> {
  const versions = reachableOnDisk(layout, role, liveVersion);
  const upToLive = versions.filter((version) => version <= liveVersion);
  const stay = new Set(versions.slice(Math.max(upToLive.length - keep, 0)));
  for (const [index, version] of upToLive.entries()) {
    const next = upToLive[index + 1];
    // A version was superseded when its successor was written. Until then every client was directed to it.
    const isYoung = (later: number): boolean =>
      clock.nowMs() - changedAtMs(join(layout.metadata, metadataName(role, later))) < graceMs;
    if (next === undefined || isYoung(next)) stay.add(version);
  }
  return stay;
}

function collectMetadata(layout: RepositoryLayout, kept: KeptVersions): Collectable[] {
  // Snapshots first, so that no snapshot ever lists a removed file.
  return [...kept].flatMap(([role, versions]) =>
    versionsOnDisk(layout, role)
      .filter((version) => !versions.has(version))
      .map((version) => collectable(layout, 'metadata', join('metadata', metadataName(role, version)))),
  );
}

const archiveFile = /^[0-9a-f]{64}\.[a-z0-9][a-z0-9._-]*$/;

function collectArchives(
  layout: RepositoryLayout,
  kept: KeptVersions,
  { graceMs, clock }: CollectOptions,
): Collectable[] {
  const listed = listedArchives(layout, kept);
  const found: Collectable[] = [];
  for (const directory of listNames(layout.targets)) {
    for (const name of listNames(join(layout.targets, directory)).filter((one) => archiveFile.test(one))) {
      const path = join('targets', directory, name);
      const since = changedAtMs(join(layout.directory, path));
      // A young archive may be an upload that precedes its metadata.
      if (listed.has(path) || clock.nowMs() - since < graceMs) continue;
      found.push(collectable(layout, name.endsWith('.delta') ? 'delta' : 'archive', path));
    }
  }
  return found;
}

function listedArchives(layout: RepositoryLayout, kept: KeptVersions): Set<string> {
  const listed = new Set<string>();
  for (const [role, versions] of kept) {
    if (role === 'snapshot') continue;
    for (const version of versions) {
      const file = readUnverified(layout, 'targets', version, role);
      for (const [path, target] of Object.entries(file?.signed.targets ?? {})) {
        for (const name of namesOf(path, target)) listed.add(join('targets', name));
      }
    }
  }
  return listed;
}

/** @returns the paths of the archive and deltas of a target; a target of another publisher has no deltas */
function namesOf(path: string, target: TargetFile): string[] {
  const { sha256 = '' } = target.hashes;
  const segments = path.split('/');
  const name = segments.pop() ?? '';
  const release = orUndefined(() => parseReleaseInfo(target.custom, path));
  const deltas = release === undefined ? [] : deltasOf({ release });
  return [join(...segments, `${sha256}.${name}`), ...deltas.map(({ place }) => pathOf(place))];
}

/** @param path relative to the repository */
function collectable(
  layout: RepositoryLayout,
  kind: 'metadata' | 'archive' | 'delta' | 'leftover',
  path: string,
) {
  const status = fs.statSync(join(layout.directory, path), { throwIfNoEntry: false });
  return { kind, path, bytes: status?.size ?? 0 };
}

/** The later of mtime and ctime, because a new hard link keeps the mtime of the first name. */
function changedAtMs(path: string): number {
  const status = fs.lstatSync(path, { throwIfNoEntry: false });
  return status === undefined ? 0 : Math.max(status.mtimeMs, status.ctimeMs);
}
