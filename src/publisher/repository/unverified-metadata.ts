// Reads metadata of a repository without verification. Only for decisions in which a file counts because a client may have
// read it: which files to keep, and which serials hosts may have accepted. Never for trust.
import { join } from 'node:path';
import { defaultMetadataLimits as limits } from '../../core/limits.js';
import { type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import { parseReleases } from './metadata-content.js';
import {
  metadataName,
  type RepositoryLayout,
  readRepositoryFile,
  readUnlessRefused,
  rolesOnDisk,
  versionsOnDisk,
} from './repository-layout.js';

/**
 * @returns undefined where the file is missing or is not metadata, because no client can use it
 * @throws WritError DISK_*, because a client may be able to read a file that this user cannot read
 */
export function readUnverified<Role extends 'snapshot' | 'targets'>(
  layout: RepositoryLayout,
  type: Role,
  version: number,
  role: string = type,
): ParsedFile<Role> | undefined {
  const maxBytes = type === 'snapshot' ? limits.maxSnapshotBytes : limits.maxTargetsBytes;
  const path = join(layout.metadata, metadataName(role, version));
  return readUnlessRefused(() => {
    const bytes = readRepositoryFile(path, maxBytes);
    return bytes && parseEnvelope(bytes, type);
  });
}

/** The number of newest versions of each role that are read. */
const maxVersions = 5000;

/**
 * Files of replaced team keys and removed roles count, although they are no longer trusted: hosts have accepted them.
 * @returns the serials of a channel that any file on disk lists, of any role and keys
 * @throws WritError DISK_*
 */
export function listSerials(
  layout: RepositoryLayout,
  { bundle, channel }: { readonly bundle: string; readonly channel: string },
): ReadonlySet<number> {
  const serials = new Set<number>();
  for (const role of rolesOnDisk(layout).filter((name) => name !== 'root' && name !== 'snapshot')) {
    for (const version of versionsOnDisk(layout, role).slice(-maxVersions)) {
      const targets = readUnverified(layout, 'targets', version, role)?.signed;
      for (const { release } of readUnlessRefused(() => targets && parseReleases(targets)) ?? []) {
        if (release.bundle === bundle && release.channel === channel) serials.add(release.serial);
      }
    }
  }
  return serials;
}
