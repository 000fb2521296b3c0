// Describes the files that `--accept-missing` leaves out: the published snapshot lists them, and they are missing. The
// operator must see their names, because a lost file cannot be distinguished from one that never existed.

import { isNamedBy } from '../../core/tuf/metadata-checks.js';
import { listedRole } from '../../core/tuf/tuf-metadata.js';
import { metadataName } from './repository-layout.js';
import { passedOverSnapshot, type RepositoryState } from './repository-state.js';
import { readUnverified } from './unverified-metadata.js';

export interface PassedOver {
  /** The version of the published snapshot. */
  readonly version: number;
  /** Names of the missing files, and of those that differ from their entries. Their releases are unknown. */
  readonly missing: readonly string[];
}

/** @returns undefined where the published snapshot is used */
export function findPassedOver(state: RepositoryState): PassedOver | undefined {
  const version = passedOverSnapshot(state);
  if (version === undefined) return undefined;
  const snapshot = readUnverified(state.layout, 'snapshot', version);
  if (snapshot === undefined) return { version, missing: [metadataName('snapshot', version)] };
  const missing = Object.entries(snapshot.signed.meta).flatMap(([name, meta]) => {
    const role = listedRole(name);
    const file = readUnverified(state.layout, 'targets', meta.version, role);
    return file !== undefined && isNamedBy(meta, file) ? [] : [metadataName(role, meta.version)];
  });
  return { version, missing };
}
