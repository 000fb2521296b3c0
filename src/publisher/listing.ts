// Which role lists which release: the newest targets of every role that may list one, and the questions that a
// change of them asks. Pure over a repository's state; signs and writes nothing.
import { targetPath } from '../core/names.js';
import { parseReleaseInfo, type ReleaseInfo } from '../core/release.js';
import type { ParsedFile, TargetFile } from '../core/tuf-metadata.js';
import { releasesOf } from './metadata-content.js';
import type { RepositoryState } from './repository-state.js';

/** One role that lists releases, with its newest file that verifies. */
export interface Listing {
  readonly role: string;
  readonly file: ParsedFile<'targets'>;
}

export interface ListedRelease {
  readonly role: string;
  readonly path: string;
  readonly file: TargetFile;
  readonly release: ReleaseInfo;
}

/** @returns every role that lists releases, the top-level targets first */
export function listingsOf({ targets }: RepositoryState): readonly Listing[] {
  return [{ role: 'targets', file: targets }];
}

/** @returns the role whose file lists this path, or would list it */
export function roleOfPath(_state: RepositoryState, _path: string): string {
  return 'targets';
}

/** @returns the head of a channel. @throws WritError TARGET_MALFORMED when the entry is not one of ours */
export function findHead(state: RepositoryState, bundle: string, channel: string): ListedRelease | undefined {
  const path = targetPath(bundle, channel);
  const role = roleOfPath(state, path);
  const targets = listingsOf(state).find((listing) => listing.role === role)?.file.signed.targets ?? {};
  const file = Object.hasOwn(targets, path) ? targets[path] : undefined;
  return file === undefined ? undefined : { role, path, file, release: parseReleaseInfo(file.custom, path) };
}

/** @returns the heads of a bundle's channels, by path. @throws WritError TARGET_MALFORMED */
export function headsOf(state: RepositoryState, bundle: string): readonly ListedRelease[] {
  return listingsOf(state).flatMap(({ role, file }) =>
    releasesOf(file.signed)
      .filter(({ path, release }) => release.bundle === bundle && roleOfPath(state, path) === role)
      .map((entry) => ({ role, ...entry })),
  );
}

/** @returns every release that hosts see now, by path. @throws WritError TARGET_MALFORMED */
export function liveReleasesOf({ live }: RepositoryState): readonly ListedRelease[] {
  return releasesOf(live.targets.signed).map((entry) => ({ role: 'targets', ...entry }));
}

/** @returns a serial above every one this bundle ever had: on any channel, by any role, withdrawn ones too */
export function nextSerial(state: RepositoryState, bundle: string): number {
  return highestSerial(state, bundle) + 1;
}

/** @returns the highest serial this bundle ever had; 0 for a new one */
export function highestSerial(state: RepositoryState, bundle: string): number {
  return listingsOf(state)
    .flatMap(({ file }) => releasesOf(file.signed))
    .filter(({ release }) => release.bundle === bundle)
    .flatMap(({ release }) => [release.serial, ...release.withdrawn])
    .reduce((highest, serial) => Math.max(highest, serial), 0);
}
