// Releases of a team that hosts saw under keys that were replaced since. A withdrawal returns to one only where the
// operator names its serial. Attack: a stolen key can sign further files at any time, so a published snapshot must list the
// file.
import { join } from 'node:path';
import { defaultMetadataLimits as limits } from '../../core/limits.js';
import { isNamedBy, isVouchedByRoot } from '../../core/tuf/metadata-checks.js';
import { type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import { delegatedRolesOf, readDelegatedFile } from '../repository/delegated-files.js';
import type { ListedRelease } from '../repository/listing.js';
import { parseReleases } from '../repository/metadata-content.js';
import {
  metadataName,
  readRepositoryFile,
  readUnlessRefused,
  versionsOnDisk,
} from '../repository/repository-layout.js';
import type { RepositoryState } from '../repository/repository-state.js';

/** The number of newest snapshots that are read. */
const maxSnapshots = 250;

/** @returns the releases of a bundle that published versions of a role list, each channel and serial once, newest first */
export function formerReleases(
  state: RepositoryState,
  { role, bundle }: { readonly role: string; readonly bundle: string },
): readonly ListedRelease[] {
  const found = new Map<string, ListedRelease>();
  const versions = versionsOnDisk(state.layout, 'snapshot').reverse().slice(0, maxSnapshots);
  const read = new Set<number>();
  for (const version of versions) {
    const file = readUnlessRefused(() => readPublished(state, { role, version, read }));
    for (const entry of readUnlessRefused(() => parseReleases(file?.signed ?? { targets: {} })) ?? []) {
      const { channel, serial } = entry.release;
      const key = `${channel} ${serial}`;
      if (entry.release.bundle === bundle && !found.has(key)) found.set(key, { role, ...entry });
    }
  }
  return [...found.values()].sort((a, b) => b.release.serial - a.release.serial);
}

interface Wanted {
  readonly role: string;
  /** The version of the snapshot. */
  readonly version: number;
  /** The versions of the role that were already read. */
  readonly read: Set<number>;
}

/** @returns the file of the role that a snapshot lists, verified under the delegation in the targets of the same snapshot */
function readPublished(
  state: RepositoryState,
  { role, version, read }: Wanted,
): ParsedFile<'targets'> | undefined {
  const snapshot = readTopLevel(state, 'snapshot', version, limits.maxSnapshotBytes);
  const { meta } = snapshot?.signed ?? {};
  const named = meta?.[`${role}.json`];
  const delegator = meta?.['targets.json'];
  if (named === undefined || delegator === undefined || read.has(named.version)) return undefined;
  const targets = readTopLevel(state, 'targets', delegator.version, limits.maxTargetsBytes);
  if (targets === undefined || !isNamedBy(delegator, targets)) return undefined;
  const delegated = delegatedRolesOf(targets).find(({ name }) => name === role);
  if (delegated === undefined) return undefined;
  const file = readDelegatedFile(state.layout, targets, delegated, named.version);
  if (!isNamedBy(named, file)) return undefined;
  read.add(named.version);
  return file;
}

function readTopLevel<Role extends 'snapshot' | 'targets'>(
  { layout, live }: RepositoryState,
  role: Role,
  version: number,
  maxBytes: number,
): ParsedFile<Role> | undefined {
  const bytes = readRepositoryFile(join(layout.metadata, metadataName(role, version)), maxBytes);
  if (bytes === undefined) return undefined;
  const file = parseEnvelope(bytes, role);
  return file.signed.version === version && isVouchedByRoot(file, live.root) ? file : undefined;
}
