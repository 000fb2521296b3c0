// The releases of a bundle that older metadata in the repository vouches for: what a withdrawal can go back to.
// Believes only files that the keys of today signed: a former key may be a stolen one. Reads one file at a time.
import { join } from 'node:path';
import { defaultMetadataLimits as limits } from '../../core/limits.js';
import { isVouchedByRoot } from '../../core/tuf/metadata-checks.js';
import { type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import { delegatedRolesOf, readDelegatedFile } from '../repository/delegated-files.js';
import { type ListedRelease, listingsOf } from '../repository/listing.js';
import { releasesOf } from '../repository/metadata-content.js';
import {
  metadataName,
  readRepositoryFile,
  unlessRefused,
  versionsOnDisk,
} from '../repository/repository-layout.js';
import type { RepositoryState } from '../repository/repository-state.js';

/** Older versions than these are not looked at; `writ repo gc` keeps far fewer. */
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
        // The newest mention has the newest list of what was withdrawn.
        if (entry.release.bundle === bundle && !found.has(key)) found.set(key, entry);
      }
    }
  }
  return [...found.values()].sort((a, b) => b.release.serial - a.release.serial);
}

function releasesIn(state: RepositoryState, role: string, version: number): ListedRelease[] {
  const read = (): ListedRelease[] | undefined => {
    const file = readVouched(state, role, version);
    return file && releasesOf(file.signed).map((entry) => ({ role, ...entry }));
  };
  return unlessRefused(read) ?? [];
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
