// `writ repo export`: copies the published state into a directory that a host without a network reads through file:// under
// the same rules. The order is that of a publish, with the timestamp last. An interrupted export therefore shows the
// previous export, or, in a new directory, no repository.
import * as fs from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { WritError } from '../../core/errors.js';
import { defaultMetadataLimits as limits } from '../../core/limits.js';
import { digestHex } from '../../core/names.js';
import {
  listedRole,
  type ParsedFile,
  parseEnvelope,
  type TopLevelRole,
} from '../../core/tuf/tuf-metadata.js';
import { createTally, type WorkReport } from '../../core/work-report.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { requireTrustedLink } from '../../platform/disk/trusted-path.js';
import type { Clock } from '../../platform/time/clock.js';
import { copyArchive } from '../archive/copy-archive.js';
import { makeParents } from '../keys/new-key.js';
import { type ListedRelease, liveReleasesOf } from '../repository/listing.js';
import { archiveOf, filesOf } from '../repository/release-files.js';
import {
  isReleaseFile,
  layoutOf,
  listNames,
  metadataName,
  pathOf,
  type RepositoryLayout,
  readRepositoryFile,
  removeLeftovers,
  versionsOnDisk,
} from '../repository/repository-layout.js';
import { invalid, type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import { type LockWait, withRepository } from '../repository/repository-writer.js';
import { judgePublishedSnapshot } from '../repository/seen-files.js';
import { refreshAsNewHost } from '../signing/self-check.js';

export interface ExportOptions extends LockWait {
  readonly repository: string;
  /** The destination: a new or empty directory, or an earlier export of this repository. */
  readonly directory: string;
  /** The bundles to export; all by default. The metadata is always complete. */
  readonly bundles?: readonly string[] | undefined;
  readonly clock: Clock;
  readonly durableFs: DurableFs;
  readonly report: WorkReport;
}

export type ExportResult = Awaited<ReturnType<typeof exportRepository>>;

/**
 * Exports the published state.
 * @returns the exported releases, the number of archives that were copied, and whether the published snapshot lists older
 *   files than another snapshot
 * @throws WritError USAGE, REPOSITORY_EXISTS (the directory contains something else), RELEASE_UNKNOWN, REPOSITORY_LOCKED,
 *   REPOSITORY_INVALID, PATH_UNSAFE, DISK_*
 */
export async function exportRepository(options: ExportOptions) {
  return withRepository({ ...options, holder: 'export' }, async (writer) => {
    const state = readRepositoryState(writer.layout);
    const releases = chosenReleases(state, options.bundles);
    const to = layoutOf(resolve(options.directory));
    requirePlace(state, to);
    makeDirectories(to, options.durableFs);
    removeLeftovers(to);
    const copied = await copyReleases(state, to, releases, options);
    options.report.begin('export', 'metadata');
    const names = copyMetadata(state, to, options.durableFs);
    // One flush is enough, because hosts read nothing before the timestamp exists.
    await options.durableFs.flushTree('export.flush', to.directory);
    await verifyExport(state, to.directory, options.clock);
    options.durableFs.writeFile('export.timestamp', to.timestamp, state.live.timestamp.bytes, 0o644);
    const removed = removeOld(to, names, releases, options.durableFs);
    const bytes = releases.flatMap(filesOf).reduce((total, { length }) => total + length, 0);
    const verdict = judgePublishedSnapshot(state);
    return { releases, copied, bytes, removed, expires: firstExpiry(state), ...verdict };
  });
}

function chosenReleases(state: RepositoryState, bundles?: readonly string[]): readonly ListedRelease[] {
  const all = liveReleasesOf(state);
  const bundle = bundles?.find((one) => !all.some(({ release }) => release.bundle === one));
  if (bundle !== undefined) {
    throw new WritError('RELEASE_UNKNOWN', `the repository lists no ${bundle}`, { facts: { bundle } });
  }
  return bundles === undefined ? all : all.filter(({ release }) => bundles.includes(release.bundle));
}

/** @throws WritError for a destination other than a new or empty directory or an older export of the same repository */
function requirePlace({ layout, anchor, live }: RepositoryState, to: RepositoryLayout): void {
  const inside = (outer: string, inner: string): boolean => inner === outer || inner.startsWith(outer + sep);
  const source = fs.realpathSync(layout.directory);
  const target = fs.existsSync(to.directory) ? fs.realpathSync(to.directory) : to.directory;
  if (inside(source, target) || inside(target, source)) {
    const facts = { path: to.directory };
    throw new WritError('USAGE', 'DIR and the repository contain each other', { facts });
  }
  const names = listNames(to.directory).filter((name) => name !== 'lost+found');
  if (names.length === 0) return;
  const firstRoot = ({ metadata }: RepositoryLayout): Buffer | undefined =>
    readRepositoryFile(join(metadata, metadataName('root', 1)), limits.maxRootBytes);
  const root = firstRoot(to);
  const isForeign =
    root === undefined
      ? names.some((name) => name !== 'metadata' && name !== 'targets')
      : !root.equals(firstRoot(layout) ?? anchor);
  if (isForeign) {
    const facts = { path: to.directory, found: names.slice(0, 5) };
    throw new WritError('REPOSITORY_EXISTS', `${to.directory} contains something else`, { facts });
  }
  const there = readRepositoryFile(to.timestamp, limits.maxTimestampBytes);
  const actual = live.timestamp.signed.version;
  const expected = there === undefined ? 0 : parseEnvelope(there, 'timestamp').signed.version;
  // Hosts that accepted the newer timestamp would refuse this one as a replay.
  if (expected <= actual) return;
  throw new WritError('REPOSITORY_EXISTS', `${to.directory} has a newer timestamp, version ${expected}`, {
    facts: { expected, actual, path: to.directory },
    hint: 'Export the newest repository, not an old copy.',
  });
}

function makeDirectories(to: RepositoryLayout, durableFs: DurableFs): void {
  makeParents(to.directory);
  for (const path of [to.directory, to.metadata, to.targets]) {
    requireTrustedLink(path);
    durableFs.ensureDirectory('export.directory', path, 0o755);
  }
}

async function copyReleases(
  { layout }: RepositoryState,
  to: RepositoryLayout,
  releases: readonly ListedRelease[],
  { durableFs, report }: ExportOptions,
): Promise<number> {
  let copied = 0;
  const total = releases.flatMap(filesOf).reduce((sum, { length }) => sum + length, 0);
  let what = '';
  const part = createTally(total, (done) => report.progress('export', { done, total, unit: 'bytes' }, what));
  for (const entry of releases) {
    const { bundle, channel } = entry.release;
    if (archiveOf(entry) === undefined) {
      throw new WritError('REPOSITORY_INVALID', `${bundle} has no digest`, { facts: { bundle } });
    }
    what = `${bundle} ${channel}`;
    report.begin('export', what);
    requireTrustedLink(join(to.targets, bundle));
    durableFs.ensureDirectory('export.bundle', join(to.targets, bundle), 0o755);
    for (const { place, length } of filesOf(entry)) {
      const name = pathOf(place);
      const ends = { from: join(layout.targets, name), to: join(to.targets, name) };
      const verdict = await copyArchive({
        ...ends,
        length,
        digestHex: digestHex(place.digest),
        durableFs,
        more: part(length),
      });
      if (verdict === 'copied') copied += 1;
    }
  }
  return copied;
}

/** @returns the names of all published metadata files; timestamp.json is included, and is the only one not written yet */
function copyMetadata(
  { layout, live }: RepositoryState,
  to: RepositoryLayout,
  durableFs: DurableFs,
): Set<string> {
  const roots = versionsOnDisk(layout, 'root').map((version) => metadataName('root', version));
  const snapshot = metadataName('snapshot', live.snapshot.signed.version);
  const targets = Object.entries(live.snapshot.signed.meta).map(([name, { version }]) =>
    metadataName(listedRole(name), version),
  );
  for (const name of [...roots, ...targets, snapshot]) {
    const bytes = readRepositoryFile(join(layout.metadata, name), limits.maxTargetsBytes);
    if (bytes === undefined) continue;
    const path = join(to.metadata, name);
    if (readRepositoryFile(path, limits.maxTargetsBytes)?.equals(bytes) !== true) {
      durableFs.writeFile('export.metadata', path, bytes, 0o644);
    }
  }
  return new Set([...roots, ...targets, snapshot, 'timestamp.json']);
}

/** Refreshes from the export like a new host, from the first root, before its timestamp is written. */
async function verifyExport(state: RepositoryState, directory: string, clock: Clock): Promise<void> {
  const overlay = new Map([['metadata/timestamp.json', state.live.timestamp.bytes]]);
  try {
    await refreshAsNewHost(state.anchor, { directory, overlay, clock });
  } catch (error) {
    throw invalid(error);
  }
}

/**
 * Removes files of the previous export that this one lacks. A client with the old timestamp has read them, or reads again
 * with the new one.
 */
function removeOld(
  to: RepositoryLayout,
  names: ReadonlySet<string>,
  releases: readonly ListedRelease[],
  durableFs: DurableFs,
): number {
  const listed = new Set(releases.flatMap(filesOf).map(({ place }) => pathOf(place)));
  const metadata = listNames(to.metadata).filter((name) => name.endsWith('.json') && !names.has(name));
  const archives = listNames(to.targets)
    .flatMap((bundle) => listNames(join(to.targets, bundle)).map((name) => join(bundle, name)))
    .filter((name) => isReleaseFile(name) && !listed.has(name));
  const old = [
    ...metadata.map((name) => join(to.metadata, name)),
    ...archives.map((name) => join(to.targets, name)),
  ];
  for (const path of old) durableFs.removeTree('export.remove', path);
  return old.length;
}

/** @returns the role that expires first; after that, hosts accept nothing from this export */
function firstExpiry({ live }: RepositoryState): { readonly role: string; readonly atMs: number } {
  const { name: role, expiresAtMs: atMs } = [
    live.targets,
    ...live.delegated.values(),
    live.snapshot,
    live.timestamp,
  ].reduce<ParsedFile<TopLevelRole>>((a, b) => (b.expiresAtMs < a.expiresAtMs ? b : a), live.root);
  return { role, atMs };
}
