// Which role lists which release: the newest targets of every role that may list releases, and queries that a change of
// them needs. Decides over a repository state; signs and writes nothing.
import { isDeepStrictEqual } from 'node:util';
import { WritError } from '../../core/errors.js';
import { targetPath } from '../../core/names.js';
import { parseReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import { maxSerial, withdrawCommand } from '../../core/release/serial.js';
import { isNamedBy } from '../../core/tuf/metadata-checks.js';
import { beginsAgain } from '../../core/tuf/metadata-version.js';
import { matchesPath } from '../../core/tuf/target-search.js';
import type { ParsedFile, TargetFile } from '../../core/tuf/tuf-metadata.js';
import { delegatedRolesOf } from './delegated-files.js';
import { parseReleases } from './metadata-content.js';
import { readUnlessRefused } from './repository-layout.js';
import type { RepositoryState } from './repository-state.js';
import { readSeenFile } from './seen-files.js';
import { readUnverified } from './unverified-metadata.js';
import { listedFile } from './version-restarts.js';

/** A role that lists releases. */
interface Listing {
  readonly role: string;
  /** By target path. */
  readonly targets: Readonly<Record<string, TargetFile>>;
}

export interface ListedRelease {
  readonly role: string;
  readonly path: string;
  readonly file: TargetFile;
  readonly release: ReleaseInfo;
}

/**
 * The releases that a delegating role handed over to a role. The delegating role signs them until the role's own file lists
 * them.
 */
export interface HandOver {
  /**
   * The newest version of the role's file at the hand-over; 0 without a file. The hand-over does not replace a later file
   * that is lost.
   */
  readonly after: number;
  /** By target path. */
  readonly targets: Readonly<Record<string, TargetFile>>;
}

export type HandedOver = Readonly<Record<string, HandOver>>;

/** @returns the hand-overs of targets by role: `writ.handedOver` in their signed part */
export function handedOverBy({ signed }: ParsedFile<'targets'>): HandedOver {
  return (signed as { readonly writ?: { readonly handedOver?: HandedOver } }).writ?.handedOver ?? {};
}

/**
 * @param own the newest file of the role; undefined where it has signed none
 * @returns true while the role has signed nothing since the hand-over; its earlier files are older than the hand-over
 */
export function isInForce({ after }: HandOver, own: ParsedFile<'targets'> | undefined): boolean {
  if (own === undefined) return true;
  const { version } = own.signed;
  // The versions of the role restarted after the hand-over.
  if (beginsAgain(after) && !beginsAgain(version)) return false;
  return version <= after;
}

/**
 * @returns every role that lists releases, the top-level targets first. A role that has not signed since a hand-over lists
 *   the handed-over releases
 */
export function listingsOf({ targets, delegated, restarted }: RepositoryState): readonly Listing[] {
  const handedOver = handedOverBy(targets);
  const teams = delegatedRolesOf(targets).map(({ name }) => {
    const own = delegated.get(name) ?? restarted.get(name);
    const received = Object.hasOwn(handedOver, name) ? handedOver[name] : undefined;
    const newest = received !== undefined && isInForce(received, own) ? received : own?.signed;
    return { role: name, targets: newest?.targets ?? {} };
  });
  return [{ role: 'targets', targets: targets.signed.targets }, ...teams];
}

/** @returns the targets of a role by path, as in listingsOf; empty for an unknown role */
export function targetsListedBy(state: RepositoryState, role: string): Listing['targets'] {
  return listingsOf(state).find((listing) => listing.role === role)?.targets ?? {};
}

/**
 * @returns the releases of a delegated role that hosts have seen, by path. Where hosts have not seen a version of the role
 *   since a hand-over, these are the handed-over paths. A file of the role that no snapshot lists is never included,
 *   because a stolen key may have signed that file
 */
export function publishedTargetsOf(state: RepositoryState, role: string): Listing['targets'] {
  const { targets, live, delegated, restarted } = state;
  const listed = live.delegated.get(role) ?? restarted.get(role);
  // Without a newer file, no later file was published, and the other snapshots need not be read.
  const hasNewer = delegated.get(role) !== undefined && delegated.get(role) !== live.delegated.get(role);
  const seen = hasNewer ? readSeenFile(state, targets, role) : undefined;
  const own = seen ?? listed;
  const published = own?.signed.targets ?? {};
  const handedOver = handedOverBy(targets);
  const received = Object.hasOwn(handedOver, role) ? handedOver[role] : undefined;
  if (received === undefined || !isInForce(received, own)) return published;
  const entries = Object.entries(received.targets);
  return Object.fromEntries(entries.map(([path, file]) => [path, published[path] ?? file]));
}

/** @returns the role that lists this path, or would list it: the first match in the search order of a client */
export function roleOfPath({ targets }: Pick<RepositoryState, 'targets'>, path: string): string {
  if (Object.hasOwn(targets.signed.targets, path)) return 'targets';
  return delegatedRolesOf(targets).find((role) => matchesPath(role, path))?.name ?? 'targets';
}

/**
 * @returns the head of a channel; undefined without one. @throws WritError TARGET_MALFORMED where the entry is not a Writ
 *   release
 */
export function findHead(state: RepositoryState, bundle: string, channel: string): ListedRelease | undefined {
  const path = targetPath(bundle, channel);
  const role = roleOfPath(state, path);
  const targets = targetsListedBy(state, role);
  const file = Object.hasOwn(targets, path) ? targets[path] : undefined;
  return file === undefined ? undefined : { role, path, file, release: parseReleaseInfo(file.custom, path) };
}

/** @returns the heads of a bundle's channels, by path. @throws WritError TARGET_MALFORMED */
export function headsOf(state: RepositoryState, bundle: string): readonly ListedRelease[] {
  return listingsOf(state)
    .flatMap(({ role, targets }) => filterReachable(state, role, targets))
    .filter(({ release }) => release.bundle === bundle);
}

/** @returns every release that hosts see now, by path. @throws WritError TARGET_MALFORMED */
export function liveReleasesOf(state: RepositoryState): readonly ListedRelease[] {
  const { targets, delegated } = state.live;
  const files = [targets, ...delegated.values()];
  return files.flatMap(({ name, signed }) => filterReachable({ targets }, name, signed.targets));
}

export interface NewListedRelease extends ListedRelease {
  /** The role that signed this unchanged release for hosts before. */
  readonly movedFrom?: string;
}

/** @returns the releases that hosts will see after the newest files are published, and do not see now in this form */
export function listNewReleases(state: RepositoryState): readonly NewListedRelease[] {
  const { live, targets, delegated } = state;
  const newest = { targets, live: { ...live, targets, delegated } };
  const seen = readReleases(state);
  const before = new Map(seen.map((entry) => [entry.path, entry]));
  const former = new Map(listFormerReleases(state).map((entry) => [entry.path, entry]));
  return readReleases(newest).flatMap((entry) => {
    const { path, role, file } = entry;
    const known = before.get(path);
    const isSame = known !== undefined && isDeepStrictEqual(known.file, file);
    if (isSame && known.role === role) return [];
    if (isSame) return [{ ...entry, movedFrom: known.role }];
    const isFormer = known === undefined && isDeepStrictEqual(former.get(path)?.file, file);
    return [isFormer ? { ...entry, movedFrom: former.get(path)?.role ?? role } : entry];
  });
}

/**
 * @returns the releases of teams that the published snapshot lists and only replaced keys have signed, because hosts have
 *   them
 */
function listFormerReleases({ layout, live }: RepositoryState): readonly ListedRelease[] {
  return delegatedRolesOf(live.targets).flatMap(({ name }) => {
    const listed = live.delegated.has(name) ? undefined : listedFile(live.snapshot.signed.meta, name);
    const file = listed && readUnverified(layout, 'targets', listed.version, name);
    const isListed = listed !== undefined && file !== undefined && isNamedBy(listed, file);
    return isListed ? readListedReleases(name, file.signed.targets) : [];
  });
}

export interface MarkedRelease extends ListedRelease {
  /** Hosts see this release now, in this form. */
  readonly isLive: boolean;
}

/** @returns the releases of a listing with their marks, without malformed ones */
export function markListedReleases(
  state: RepositoryState,
  role: string,
  targets: Listing['targets'],
): readonly MarkedRelease[] {
  // Hosts saw the releases of a role with restarted versions.
  const { live: seen, restarted } = state;
  const delegated = new Map([...seen.delegated, ...restarted]);
  const entries = readReleases({ live: { ...seen, delegated } });
  const live = new Map(entries.map((entry) => [entry.path, entry.file]));
  return readListedReleases(role, targets).map((entry) => {
    return { ...entry, isLive: isDeepStrictEqual(live.get(entry.path), entry.file) };
  });
}

/** Like liveReleasesOf, but omits files that list a malformed release, because hosts refuse them. */
function readReleases({ live }: Pick<RepositoryState, 'live'>): readonly ListedRelease[] {
  const { targets, delegated } = live;
  return [targets, ...delegated.values()].flatMap(
    ({ name, signed }) => readUnlessRefused(() => filterReachable({ targets }, name, signed.targets)) ?? [],
  );
}

/** @returns the entries of a role's listing as releases, without malformed ones */
export function readListedReleases(role: string, targets: Listing['targets']): readonly ListedRelease[] {
  return Object.entries(targets).flatMap(([path, file]) => {
    return (
      readUnlessRefused(() => ({ role, path, file, release: parseReleaseInfo(file.custom, path) })) ?? []
    );
  });
}

/** Omits paths that another role lists, because no client finds them in this role. */
function filterReachable(
  state: Pick<RepositoryState, 'targets'>,
  role: string,
  targets: Listing['targets'],
): ListedRelease[] {
  return parseReleases({ targets })
    .filter(({ path }) => roleOfPath(state, path) === role)
    .map((entry) => ({ role, ...entry }));
}

/**
 * @param afterSerial the highest serial of another repository that this one replaces
 * @returns a serial above every serial that this bundle ever had: on any channel, by any role, withdrawn ones included
 * @throws WritError REPOSITORY_INVALID where a release that is not withdrawn has the highest possible serial; USAGE where
 *   afterSerial is the highest possible serial
 */
export function nextSerial(state: RepositoryState, bundle: string, afterSerial = 0): number {
  const next = Math.max(highestSerial(state, bundle), afterSerial) + 1;
  return next <= maxSerial ? next : serialBelowWithdrawn(state, bundle, afterSerial);
}

/**
 * Fast-forward attack: a stolen key signed the highest serial, so that none can follow it. A host ignores an accepted
 * serial that is withdrawn. Once no channel offers it any more, the lowest unused serial above the listed releases is the
 * next.
 */
function serialBelowWithdrawn(state: RepositoryState, bundle: string, afterSerial: number): number {
  const used = new Set(usedSerials(state, bundle));
  const listed = headsOf(state, bundle).map(({ release }) => release.serial);
  const highest = Math.max(0, ...listed);
  let next = Math.max(highest, afterSerial) + 1;
  while (used.has(next)) next += 1;
  if (next <= maxSerial) return next;
  if (highest < maxSerial) throw highestAfterSerial(bundle, afterSerial);
  throw new WritError('REPOSITORY_INVALID', `no serial can follow ${highest} of ${bundle}`, {
    facts: { bundle, serial: highest, expected: maxSerial },
    hint: `A stolen key may have signed it: \`${withdrawCommand({ bundle, serial: highest })}\`, then publish again. If no other release is left, publish under a new bundle name.`,
  });
}

function highestAfterSerial(bundle: string, afterSerial: number): WritError {
  return new WritError('USAGE', `no serial of ${bundle} can follow ${afterSerial} of --after-serial`, {
    facts: { bundle, expected: maxSerial - 1, actual: afterSerial },
    hint: 'Give the highest serial that hosts have. If hosts have this serial, publish under a new bundle name.',
  });
}

/** @returns serials of both lists, each once, ascending */
export function unionOf(serials: readonly number[], others: readonly number[] = []): number[] {
  return [...new Set([...serials, ...others])].sort((a, b) => a - b);
}

/** @returns the highest serial that this bundle ever had; 0 for a new bundle */
export function highestSerial(state: RepositoryState, bundle: string): number {
  return usedSerials(state, bundle).reduce((highest, serial) => Math.max(highest, serial), 0);
}

function usedSerials(state: RepositoryState, bundle: string): readonly number[] {
  return [...listingsOf(state), ...Object.values(handedOverBy(state.targets))]
    .flatMap(parseReleases)
    .filter(({ release }) => release.bundle === bundle)
    .flatMap(({ release }) => [release.serial, ...release.withdrawn]);
}
