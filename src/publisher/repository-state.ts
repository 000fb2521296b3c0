// The repository as it is on disk, verified against a root that its publisher holds: what the next version is
// built on. Signatures and the chain of roots count as for a client; expiry does not, or a repository that
// slept could never be woken. Somebody who can write to the directory must not get his own targets signed.
import { join } from 'node:path';
import { isWritError, WritError } from '../core/errors.js';
import { defaultMetadataLimits as limits } from '../core/limits.js';
import { isNamedBy, isVouched, requireThreshold } from '../core/metadata-checks.js';
import { type TrustedSet, trustFirstRoot, trustNextRoot } from '../core/trusted-set.js';
import { type MetaFile, type ParsedFile, parseEnvelope } from '../core/tuf-metadata.js';
import {
  metadataName,
  type RepositoryLayout,
  readRepositoryFile,
  versionsOnDisk,
} from './repository-layout.js';

/** All four roles are there and belong together. */
export type LiveSet = Required<Omit<TrustedSet, 'clockFloorMs'>>;

export interface RepositoryState {
  readonly layout: RepositoryLayout;
  /** The root that everything was verified from. */
  readonly anchor: Buffer;
  /** What clients see now. */
  readonly live: LiveSet;
  /** The newest targets that verify: those of `live`, or newer ones that wait for the online keys. */
  readonly targets: ParsedFile<'targets'>;
  /** Newer targets files that do not verify: nothing is built on them, and nothing takes their version. */
  readonly ignored: readonly string[];
}

/** Name of the root in a directory of keys: the publisher's own copy, out of reach of whoever serves. */
export const anchorName = 'root.json';

/**
 * @param keysDirectory where the publisher's copy of the first root lies; without one, the repository's own
 *   first root is believed
 * @throws WritError REPOSITORY_INVALID with the code of what is wrong among its facts
 */
export function readRepositoryState(layout: RepositoryLayout, keysDirectory?: string): RepositoryState {
  const anchor = readAnchor(layout, keysDirectory);
  return asInvalid(() => {
    const { root } = followRoots(layout, anchor);
    const timestamp = parseEnvelope(readRequired(layout.timestamp, limits.maxTimestampBytes), 'timestamp');
    requireThreshold(timestamp, root.signed, 'timestamp');
    const snapshot = readNamed(layout, 'snapshot', timestamp.signed.meta['snapshot.json'], root);
    const targets = readNamed(layout, 'targets', snapshot.signed.meta['targets.json'], root);
    const newest = findNewest(layout, targets, root);
    return { layout, anchor, live: { root, timestamp, snapshot, targets }, ...newest };
  });
}

function readAnchor(layout: RepositoryLayout, keysDirectory: string | undefined): Buffer {
  const own = keysDirectory === undefined ? undefined : join(keysDirectory, anchorName);
  const bytes =
    (own === undefined ? undefined : readRepositoryFile(own, limits.maxRootBytes)) ??
    readRepositoryFile(join(layout.metadata, metadataName('root', 1)), limits.maxRootBytes);
  if (bytes !== undefined) return bytes;
  throw new WritError('REPOSITORY_INVALID', `${layout.directory} is no repository`, {
    facts: { path: layout.directory },
    hint: 'Make one with `writ init`, or correct --repository.',
  });
}

function followRoots(layout: RepositoryLayout, anchor: Buffer): TrustedSet {
  let set = trustFirstRoot(anchor);
  for (let rotation = 0; rotation < limits.maxRootRotations; rotation += 1) {
    const name = metadataName('root', set.root.signed.version + 1);
    const bytes = readRepositoryFile(join(layout.metadata, name), limits.maxRootBytes);
    if (bytes === undefined) return set;
    set = trustNextRoot(set, bytes);
  }
  return set;
}

function readNamed<Role extends 'snapshot' | 'targets'>(
  layout: RepositoryLayout,
  role: Role,
  meta: MetaFile | undefined,
  root: ParsedFile<'root'>,
): ParsedFile<Role> {
  const name = metadataName(role, meta?.version ?? 0);
  const maxBytes = role === 'snapshot' ? limits.maxSnapshotBytes : limits.maxTargetsBytes;
  const file = parseEnvelope(readRequired(join(layout.metadata, name), maxBytes), role);
  requireThreshold(file, root.signed, role);
  if (meta !== undefined && isNamedBy(meta, file)) return file;
  throw new WritError('METADATA_MIX', `${name} is not the one that is named`, { facts: { name } });
}

function readRequired(path: string, maxBytes: number): Buffer {
  const bytes = readRepositoryFile(path, maxBytes);
  if (bytes !== undefined) return bytes;
  throw new WritError('METADATA_MISSING', `${path} is not there`, { facts: { path } });
}

function findNewest(
  layout: RepositoryLayout,
  live: ParsedFile<'targets'>,
  root: ParsedFile<'root'>,
): Pick<RepositoryState, 'targets' | 'ignored'> {
  const newer = versionsOnDisk(layout, 'targets').filter((version) => version > live.signed.version);
  const ignored: string[] = [];
  for (const version of newer.reverse()) {
    const targets = readPending(layout, version, root);
    if (targets !== undefined) return { targets, ignored };
    ignored.push(metadataName('targets', version));
  }
  return { targets: live, ignored };
}

function readPending(
  layout: RepositoryLayout,
  version: number,
  root: ParsedFile<'root'>,
): ParsedFile<'targets'> | undefined {
  try {
    const path = join(layout.metadata, metadataName('targets', version));
    const file = parseEnvelope(readRequired(path, limits.maxTargetsBytes), 'targets');
    // A copy of older targets under a newer name is not newer.
    return isVouched(file, root) && file.signed.version === version ? file : undefined;
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

/** Every refusal on the way is one answer to the publisher; what a client would say is kept in its facts. */
export function asInvalid<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw invalid(error);
  }
}

/** @returns the error as REPOSITORY_INVALID; others than WritError, and those of this machine's disk, as they are */
export function invalid(error: unknown): unknown {
  if (!isWritError(error) || error.code === 'REPOSITORY_INVALID' || error.code.startsWith('DISK_'))
    return error;
  return new WritError('REPOSITORY_INVALID', `the repository does not verify: ${error.message}`, {
    facts: { ...error.facts, clientCode: error.code },
    hint: error.hint,
    cause: error,
  });
}
