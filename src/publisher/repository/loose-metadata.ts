// Metadata of a repository as it is there, whoever signed it. For questions where a file counts because somebody may
// have read it: what must be kept, what hosts may have accepted. Never for what is believed.
import { join } from 'node:path';
import { defaultMetadataLimits as limits } from '../../core/limits.js';
import { type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import { releasesOf } from './metadata-content.js';
import {
  metadataName,
  type RepositoryLayout,
  readRepositoryFile,
  rolesOnDisk,
  unlessRefused,
  versionsOnDisk,
} from './repository-layout.js';

/**
 * @returns undefined for what is not there or is no metadata: it leads nobody anywhere
 * @throws WritError DISK_*: what we may not read, a client may
 */
export function readLoosely<Role extends 'snapshot' | 'targets'>(
  layout: RepositoryLayout,
  type: Role,
  version: number,
  role: string = type,
): ParsedFile<Role> | undefined {
  const maxBytes = type === 'snapshot' ? limits.maxSnapshotBytes : limits.maxTargetsBytes;
  const path = join(layout.metadata, metadataName(role, version));
  return unlessRefused(() => {
    const bytes = readRepositoryFile(path, maxBytes);
    return bytes && parseEnvelope(bytes, type);
  });
}

/** Older versions than these are not looked at. */
const maxVersions = 5000;

/**
 * A team's key that was replaced, a role that is gone: what they signed is believed no more, and hosts accepted it.
 * @returns serials of a channel that any file here lists, by whatever role and keys
 * @throws WritError DISK_*
 */
export function serialsListed(
  layout: RepositoryLayout,
  { bundle, channel }: { readonly bundle: string; readonly channel: string },
): ReadonlySet<number> {
  const serials = new Set<number>();
  for (const role of rolesOnDisk(layout).filter((name) => name !== 'root' && name !== 'snapshot')) {
    for (const version of versionsOnDisk(layout, role).slice(-maxVersions)) {
      const targets = readLoosely(layout, 'targets', version, role)?.signed;
      for (const { release } of unlessRefused(() => targets && releasesOf(targets)) ?? []) {
        if (release.bundle === bundle && release.channel === channel) serials.add(release.serial);
      }
    }
  }
  return serials;
}
