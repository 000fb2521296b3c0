// Which role lists which release: the newest targets of every role that may list one, and the questions that a
// change of them asks. Decides over a repository's state; signs and writes nothing.
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
import { readLoosely } from './loose-metadata.js';
import { releasesOf } from './metadata-content.js';
import { unlessRefused } from './repository-layout.js';
import type { RepositoryState } from './repository-state.js';
import { readSeenFile } from './seen-files.js';
import { listedFile } from './version-restarts.js';

/** One role that lists releases. */
interface Listing {
  readonly role: string;
  /** By path. */
  readonly targets: Readonly<Record<string, TargetFile>>;
}

export interface ListedRelease {
  readonly role: string;
  readonly path: string;
  readonly file: TargetFile;
  readonly release: ReleaseInfo;
}

/** What was handed over to a role, signed by who gave it, until the role's own file has it. */
export interface HandOver {
  /** Newest version of the role's file then; 0 when it had none. A later one that is lost is not made good by this. */
  readonly after: number;
  /** By path. */
  readonly targets: Readonly<Record<string, TargetFile>>;
}

export type HandedOver = Readonly<Record<string, HandOver>>;

/** @returns what targets hand over, by role; `writ.handedOver` in their signed part */
export function handedOverBy({ signed }: ParsedFile<'targets'>): HandedOver {
  return (signed as { readonly writ?: { readonly handedOver?: HandedOver } }).writ?.handedOver ?? {};
}

/** @returns true while the role has signed nothing since the hand-over: what it signed before is older news */
export function isInForce({ after }: HandOver, own: ParsedFile<'targets'> | undefined): boolean {
  if (own === undefined) return true;
  const { version } = own.signed;
  // The versions of the role began again after the hand-over.
  if (beginsAgain(after) && !beginsAgain(version)) return false;
  return version <= after;
}

/**
 * @returns every role that lists releases, the top-level targets first; of a role that has not signed since something
 *   was handed over to it, what was handed over
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

/** @returns what a role lists, by path: as listingsOf says it, nothing for a role that there is not */
export function targetsListedBy(state: RepositoryState, role: string): Listing['targets'] {
  return listingsOf(state).find((listing) => listing.role === role)?.targets ?? {};
}

/**
 * @returns the releases of a delegated role that hosts have seen, by path. Where hosts have not seen a version of the role since
 *   a hand-over, these are the handed-over paths. A file of the role that no snapshot lists is never in it, because a stolen key
 *   may have signed that file
 */
export function publishedTargetsOf(state: RepositoryState, role: string): Listing['targets'] {
  const { targets, live, delegated, restarted } = state;
  const listed = live.delegated.get(role) ?? restarted.get(role);
  // Without a newer file none was published: the other snapshots are not read.
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

/** @returns the role whose file lists this path, or would list it: as a client searches */
export function roleOfPath({ targets }: Pick<RepositoryState, 'targets'>, path: string): string {
  if (Object.hasOwn(targets.signed.targets, path)) return 'targets';
  return delegatedRolesOf(targets).find((role) => matchesPath(role, path))?.name ?? 'targets';
}

/** @returns the head of a channel. @throws WritError TARGET_MALFORMED when the entry is not one of ours */
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
    .flatMap(({ role, targets }) => reachable(state, role, targets))
    .filter(({ release }) => release.bundle === bundle);
}

/** @returns every release that hosts see now, by path. @throws WritError TARGET_MALFORMED */
export function liveReleasesOf(state: RepositoryState): readonly ListedRelease[] {
  const { targets, delegated } = state.live;
  const files = [targets, ...delegated.values()];
  return files.flatMap(({ name, signed }) => reachable({ targets }, name, signed.targets));
}

export interface NewListedRelease extends ListedRelease {
  /** The role that signed this release for hosts before: nothing else of it changes. */
  readonly movedFrom?: string;
}

/** @returns the releases that hosts see once the newest files are published, and that they do not see now in this form */
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

/** @returns the releases of teams that the published snapshot lists, and that only replaced keys have signed: hosts have them */
function listFormerReleases({ layout, live }: RepositoryState): readonly ListedRelease[] {
  return delegatedRolesOf(live.targets).flatMap(({ name }) => {
    const listed = live.delegated.has(name) ? undefined : listedFile(live.snapshot.signed.meta, name);
    const file = listed && readLoosely(layout, 'targets', listed.version, name);
    const isListed = listed !== undefined && file !== undefined && isNamedBy(listed, file);
    return isListed ? readListedReleases(name, file.signed.targets) : [];
  });
}

export interface MarkedRelease extends ListedRelease {
  /** Hosts see this release now, in this form. */
  readonly isLive: boolean;
}

/** @returns the releases of a listing, each marked; without malformed ones */
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

/** As liveReleasesOf, without the files that list a malformed release: hosts refuse them. */
function readReleases({ live }: Pick<RepositoryState, 'live'>): readonly ListedRelease[] {
  const { targets, delegated } = live;
  return [targets, ...delegated.values()].flatMap(
    ({ name, signed }) => unlessRefused(() => reachable({ targets }, name, signed.targets)) ?? [],
  );
}

/** @returns the entries of a role's listing as releases; without those that are malformed */
export function readListedReleases(role: string, targets: Listing['targets']): readonly ListedRelease[] {
  return Object.entries(targets).flatMap(([path, file]) => {
    return unlessRefused(() => ({ role, path, file, release: parseReleaseInfo(file.custom, path) })) ?? [];
  });
}

/** What the role of a path lists; what another role says of it no client would find. */
function reachable(
  state: Pick<RepositoryState, 'targets'>,
  role: string,
  targets: Listing['targets'],
): ListedRelease[] {
  return releasesOf({ targets })
    .filter(({ path }) => roleOfPath(state, path) === role)
    .map((entry) => ({ role, ...entry }));
}

/**
 * @param afterSerial what another repository has used up, where this one takes its place
 * @returns a serial above every one this bundle ever had: on any channel, by any role, withdrawn ones too
 * @throws WritError REPOSITORY_INVALID when a release has the highest serial and is not withdrawn; USAGE when afterSerial is it
 */
export function nextSerial(state: RepositoryState, bundle: string, afterSerial = 0): number {
  const next = Math.max(highestSerial(state, bundle), afterSerial) + 1;
  return next <= maxSerial ? next : serialBelowWithdrawn(state, bundle, afterSerial);
}

/**
 * Fast-forward attack: a stolen key signed the highest serial, so that none can follow it. A host ignores an accepted serial
 * that is withdrawn. Once each channel has left it, the lowest unused serial above the listed releases is the next.
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

/** @returns the highest serial this bundle ever had; 0 for a new one */
export function highestSerial(state: RepositoryState, bundle: string): number {
  return usedSerials(state, bundle).reduce((highest, serial) => Math.max(highest, serial), 0);
}

function usedSerials(state: RepositoryState, bundle: string): readonly number[] {
  return [...listingsOf(state), ...Object.values(handedOverBy(state.targets))]
    .flatMap(releasesOf)
    .filter(({ release }) => release.bundle === bundle)
    .flatMap(({ release }) => [release.serial, ...release.withdrawn]);
}
