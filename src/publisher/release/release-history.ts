// The releases of a bundle that older metadata in the repository lists: the candidates of a withdrawal. Uses only files
// that current keys signed, because a former key may be stolen. Reads one file at a time.
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { defaultMetadataLimits as limits } from '../../core/limits.js';
import { targetPath } from '../../core/names.js';
import { isVouchedByRoot } from '../../core/tuf/metadata-checks.js';
import { type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import { delegatedRolesOf, readDelegatedFile } from '../repository/delegated-files.js';
import { findHead, type ListedRelease, listingsOf } from '../repository/listing.js';
import { parseReleases } from '../repository/metadata-content.js';
import {
  metadataName,
  readRepositoryFile,
  readUnlessRefused,
  versionsOnDisk,
} from '../repository/repository-layout.js';
import type { RepositoryState } from '../repository/repository-state.js';

/** The number of newest versions of a role that are read; `writ repo gc` retains far fewer. */
const maxVersions = 5000;

/**
 * @returns each release once for every channel that it was the head of, newest first
 * @throws WritError DISK_*
 */
export function releaseHistory(state: RepositoryState, bundle: string): readonly ListedRelease[] {
  const found = new Map<string, ListedRelease>();
  for (const { role } of listingsOf(state)) {
    const versions = versionsOnDisk(state.layout, role).reverse().slice(0, maxVersions);
    for (const version of versions) {
      for (const entry of releasesIn(state, role, version)) {
        const key = `${entry.release.channel} ${entry.release.serial}`;
        // The newest entry of a release has the newest list of withdrawn serials.
        if (entry.release.bundle === bundle && !found.has(key)) found.set(key, entry);
      }
    }
  }
  return [...found.values()].sort((a, b) => b.release.serial - a.release.serial);
}

/** The number of newest versions of a role that are searched for the last releases of one channel. */
const maxRecentVersions = 250;

/**
 * @returns the last releases of a channel, newest first, each serial once; withdrawn ones too, because hosts have them
 * @throws WritError DISK_*
 */
export function lastReleases(
  state: RepositoryState,
  { bundle, channel, count }: { readonly bundle: string; readonly channel: string; readonly count: number },
): readonly ListedRelease[] {
  const path = targetPath(bundle, channel);
  const head = findHead(state, bundle, channel);
  if (head === undefined) return [];
  const found = new Map([[head.release.serial, head]]);
  const versions = versionsOnDisk(state.layout, head.role).reverse().slice(0, maxRecentVersions);
  for (const version of versions) {
    if (found.size >= count) break;
    for (const entry of releasesIn(state, head.role, version)) {
      if (entry.path === path && !found.has(entry.release.serial)) found.set(entry.release.serial, entry);
    }
  }
  return [...found.values()].slice(0, count).sort((a, b) => b.release.serial - a.release.serial);
}

/**
 * Requires that the corrected release exists, because hosts would ignore a mistyped serial.
 * @param afterSerial serials up to this one belong to a lost repository, and hosts may have their releases
 * @throws WritError RELEASE_UNKNOWN
 */
export function requireCorrected(
  state: RepositoryState,
  { bundle, fixes, afterSerial = 0 }: Correction,
): void {
  if (fixes === undefined || fixes <= afterSerial) return;
  const history = releaseHistory(state, bundle).map(({ release }) => release);
  if (history.some(({ serial, withdrawn }) => serial === fixes || withdrawn.includes(fixes))) return;
  const known = [...new Set(history.map(({ serial }) => serial))].slice(0, maxNamed);
  const hint = 'Name the serial of the release that hosts have: see `writ repo log --bundle NAME`.';
  throw new WritError('RELEASE_UNKNOWN', `${bundle} has no serial ${fixes} that current keys trust`, {
    facts: { bundle, serial: fixes, known },
    hint: known.length === 0 ? 'The first release of a bundle corrects none: leave --fixes out.' : hint,
  });
}

/** The number of newest serials that an error lists. */
const maxNamed = 20;

interface Correction {
  readonly bundle: string;
  readonly fixes?: number | undefined;
  readonly afterSerial?: number | undefined;
}

function releasesIn(state: RepositoryState, role: string, version: number): ListedRelease[] {
  const read = (): ListedRelease[] | undefined => {
    const file = readVouched(state, role, version);
    return file && parseReleases(file.signed).map((entry) => ({ role, ...entry }));
  };
  return readUnlessRefused(read) ?? [];
}

function readVouched(
  { layout, live, targets }: RepositoryState,
  role: string,
  version: number,
): ParsedFile<'targets'> | undefined {
  if (role !== 'targets') {
    const delegated = delegatedRolesOf(targets).find(({ name }) => name === role);
    return delegated && readDelegatedFile(layout, targets, delegated, version);
  }
  const path = join(layout.metadata, metadataName(role, version));
  const bytes = readRepositoryFile(path, limits.maxTargetsBytes);
  if (bytes === undefined) return undefined;
  const file = parseEnvelope(bytes, 'targets');
  return isVouchedByRoot(file, live.root) ? file : undefined;
}
