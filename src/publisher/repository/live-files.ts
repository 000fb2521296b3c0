// Reads the published files: the timestamp, the snapshot that it lists, and the targets that the snapshot lists. Each must
// be signed by keys of any root in the chain. Files that a thief listed may be missing after a root with new online keys.
import { join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { defaultMetadataLimits as limits, metadataBytesByRole } from '../../core/limits.js';
import {
  isNamedBy,
  isVouchedByRoot,
  requireThreshold,
  rootAuthority,
} from '../../core/tuf/metadata-checks.js';
import { forgetsVersions } from '../../core/tuf/metadata-version.js';
import { type MetaFile, type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import { delegatedRolesOf } from './delegated-files.js';
import {
  metadataName,
  type RepositoryLayout,
  readRepositoryFile,
  versionsOnDisk,
} from './repository-layout.js';
import { readUnverified } from './unverified-metadata.js';
import { listedFile } from './version-restarts.js';

/** The top-level roles that a root delegates to. */
export type LaterRole = 'timestamp' | 'snapshot' | 'targets';

export interface LiveFiles {
  readonly timestamp: ParsedFile<'timestamp'>;
  readonly snapshot: ParsedFile<'snapshot'>;
  readonly targets: ParsedFile<'targets'>;
}

export type MissingFiles = 'refused' | 'accepted';

interface LiveReading {
  readonly layout: RepositoryLayout;
  /** From the first trusted root to the newest. */
  readonly roots: readonly ParsedFile<'root'>[];
  /** The root that hosts have, or will have after a commit. */
  readonly hostRoot: ParsedFile<'root'>;
  /** `accepted` only where an operator knows that the missing files never existed. Otherwise a lost file would be ignored. */
  readonly missingFiles: MissingFiles;
}

/** The number of newest snapshots that are tried in place of a snapshot that lists missing files. */
const maxSnapshots = 64;

/**
 * Fast-forward attack with online keys alone: a snapshot lists versions that never existed. Hosts have rejected them, and
 * forget the snapshot with its key. Therefore the newest snapshot with existing files is used, but only where the newest
 * root replaces an online key and an operator accepts it.
 * @throws WritError METADATA_MISSING, METADATA_MALFORMED, METADATA_MIX, SIGNATURE_*
 */
export function readLiveFiles(reading: LiveReading): LiveFiles {
  const { layout, roots } = reading;
  const timestamp = parseEnvelope(readRequired(layout.timestamp, limits.maxTimestampBytes), 'timestamp');
  requireVoucher(timestamp, roots);
  const meta = timestamp.signed.meta['snapshot.json'];
  const named = attempt(() => readFrom(reading, timestamp, meta));
  if ('error' in named && !hasNewOnlineKeys(reading, { timestamp })) throw named.error;
  if ('files' in named && (!hasNewOnlineKeys(reading, named.files) || hasAllFiles(reading, named.files)))
    return named.files;
  if (reading.missingFiles === 'refused') throw missingFilesError(named);
  const versions = versionsOnDisk(layout, 'snapshot').reverse().slice(0, maxSnapshots);
  const others = versions.flatMap((version) => {
    const one = attempt(() => readFrom(reading, timestamp, { version }));
    return 'files' in one ? [one.files] : [];
  });
  const complete = others.find((files) => hasAllFiles(reading, files));
  if (complete !== undefined) return complete;
  if ('files' in named) return named.files;
  const [newest] = others;
  if (newest !== undefined) return newest;
  throw named.error;
}

type Attempt = { readonly files: LiveFiles } | { readonly error: WritError };

function missingFilesError(named: Attempt): WritError {
  const error = 'error' in named ? named.error : undefined;
  const message = error?.message ?? 'a file that the snapshot lists for a team is missing or differs';
  return new WritError('REPOSITORY_INVALID', `the repository does not verify: ${message}`, {
    facts: error === undefined ? {} : { ...error.facts, clientCode: error.code },
    hint: 'Restore the file from another copy. If a stolen key listed a file that never existed: `--accept-missing` of `writ root commit` and `writ refresh`.',
    ...given({ cause: error }),
  });
}

function attempt(read: () => LiveFiles): Attempt {
  try {
    return { files: read() };
  } catch (error) {
    if (isWritError(error) && !error.code.startsWith('DISK_')) return { error };
    throw error;
  }
}

function readFrom(
  { layout, roots }: LiveReading,
  timestamp: ParsedFile<'timestamp'>,
  meta: MetaFile,
): LiveFiles {
  const snapshot = readNamed(layout, 'snapshot', meta, roots);
  const targets = readNamed(layout, 'targets', snapshot.signed.meta['targets.json'], roots);
  return { timestamp, snapshot, targets };
}

/** True where each file that the snapshot lists for a delegated role exists. A replaced key may have signed it. */
function hasAllFiles({ layout }: LiveReading, { snapshot, targets }: LiveFiles): boolean {
  const { meta } = snapshot.signed;
  return delegatedRolesOf(targets).every(({ name }) => {
    const named = listedFile(meta, name);
    const file = named && readUnverified(layout, 'targets', named.version, name);
    return named === undefined || (file !== undefined && isNamedBy(named, file));
  });
}

function hasNewOnlineKeys(
  { hostRoot }: LiveReading,
  { timestamp, snapshot }: Pick<LiveFiles, 'timestamp'> & Partial<LiveFiles>,
): boolean {
  const files = [timestamp, ...(snapshot === undefined ? [] : [snapshot])];
  return forgetsVersions(files.filter((file) => !isVouchedByRoot(file, hostRoot)).map(({ role }) => role));
}

/**
 * Accepts the keys of any root in the chain. A rotation writes the new root before its new keys sign the other roles. After
 * a crash in between, or where the keys are elsewhere, the repository must stay readable for the operators that finish the
 * rotation.
 */
function requireVoucher(file: ParsedFile<LaterRole>, roots: readonly ParsedFile<'root'>[]): void {
  const newest = roots.at(-1);
  if (newest === undefined || roots.some((root) => isVouchedByRoot(file, root))) return;
  requireThreshold(file, rootAuthority(newest, file.role));
}

function readNamed<Role extends 'snapshot' | 'targets'>(
  layout: RepositoryLayout,
  role: Role,
  meta: MetaFile | undefined,
  roots: readonly ParsedFile<'root'>[],
): ParsedFile<Role> {
  const name = metadataName(role, meta?.version ?? 0);
  const maxBytes = metadataBytesByRole(limits)[role];
  const file = parseEnvelope(readRequired(join(layout.metadata, name), maxBytes), role);
  requireVoucher(file, roots);
  if (meta !== undefined && isNamedBy(meta, file)) return file;
  throw new WritError('METADATA_MIX', `${name} does not match its listed version`, { facts: { name } });
}

/**
 * Reads a file of the repository completely.
 * @returns its bytes, at most `maxBytes`; empty for an empty file
 * @throws WritError METADATA_MISSING if it does not exist, REPOSITORY_INVALID if it is not a regular file or has more bytes,
 *   DISK_* if this machine cannot read it
 */
export function readRequired(path: string, maxBytes: number): Buffer {
  const bytes = readRepositoryFile(path, maxBytes);
  if (bytes !== undefined) return bytes;
  throw new WritError('METADATA_MISSING', `${path} is missing`, { facts: { path } });
}
