// Reads and verifies the repository on disk, from a root that its publisher trusts; the next version is built on this
// state. Signatures and the chain of roots count as for a client. Expiry does not, so that an expired repository can be
// re-signed. Attack: a user with write permission to the directory must not get his own targets signed.
import { join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import { defaultMetadataLimits as limits } from '../../core/limits.js';
import {
  isNamedBy,
  isVouchedByRoot,
  requireThreshold,
  rootAuthority,
} from '../../core/tuf/metadata-checks.js';
import { restartsTargets } from '../../core/tuf/metadata-version.js';
import { type TrustedSet, trustFirstRoot, trustNextRoot } from '../../core/tuf/trusted-set.js';
import { isOnlineRole, type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import {
  type DelegatedFiles,
  findNewest,
  findNewestDelegated,
  readLiveDelegated,
  readRestartedFiles,
  requireOwnVersion,
} from './delegated-files.js';
import type { IgnoredFile } from './ignored-file.js';
import { type LaterRole, type MissingFiles, readLiveFiles, readRequired } from './live-files.js';
import {
  listNames,
  metadataName,
  noRepository,
  type RepositoryLayout,
  readRepositoryFile,
} from './repository-layout.js';
import { type PublishedSnapshot, readLaterListings } from './seen-files.js';
import { createSnapshotMemory, type SnapshotMemory } from './snapshot-memory.js';
import { readVersionRestarts, type VersionRestarts } from './version-restarts.js';

/** All four top-level roles, consistent with each other, and the delegated roles that verify. */
export type LiveSet = Required<Omit<TrustedSet, 'clockFloorMs'>>;

export interface RepositoryState {
  readonly layout: RepositoryLayout;
  /** The trusted root that all other files were verified from. */
  readonly anchor: Buffer;
  /** The published files, which clients see now. */
  readonly live: LiveSet;
  /** The newest targets that verify: the published ones, or newer ones that wait for the online keys. */
  readonly targets: ParsedFile<'targets'>;
  /** The newest file of each role that these targets delegate to, published or waiting. */
  readonly delegated: DelegatedFiles;
  /** The last published file of each delegated role with restarted versions, until a snapshot lists the role (adr/0073). */
  readonly restarted: DelegatedFiles;
  readonly restarts: VersionRestarts;
  /** Newer targets files that do not verify. The next version is not built on them, and does not reuse their version. */
  readonly ignored: readonly IgnoredFile[];
  /** Every root from the trusted one to the newest, which is `live.root`. */
  readonly roots: readonly ParsedFile<'root'>[];
  /**
   * The roles with a published file that an older root verifies and the newest root does not. Hosts wait for their new
   * files.
   */
  readonly outdated: readonly LaterRole[];
  readonly snapshotMemory: SnapshotMemory;
}

/** The name of the publisher's own copy of the root in a key directory. A server of the repository cannot change it. */
export const anchorName = 'root.json';

/**
 * Reads and verifies the metadata of a repository, from its first root. Writes nothing.
 * @param keysDirectory the directory with the publisher's copy of the first root. Without one, the repository's own first root
 *   is trusted
 * @param options `nextRoot`: the root that is about to be committed. Waiting targets count only if it lists their keys too, or
 *   a snapshot listed them, unless `shouldIncludeWaiting`. `outdatedTargets: 'accepted'` only where they are signed again and a
 *   person sees them. Attack: targets of a key that the root no longer lists may come from a thief, so the next version must
 *   never be built on them unseen
 * @returns the verified files: `live` as hosts see them, `targets` and `delegated` with newer signed files, and in `ignored`
 *   those that do not verify. `outdated` is empty unless a root replaced the keys of a published file
 * @throws WritError REPOSITORY_INVALID, with the code of the cause in its facts, also for a directory without a repository;
 *   DISK_*
 */
export function readRepositoryState(
  layout: RepositoryLayout,
  keysDirectory?: string,
  options: {
    readonly outdatedTargets?: 'accepted';
    readonly nextRoot?: ParsedFile<'root'> | undefined;
    readonly shouldIncludeWaiting?: boolean | undefined;
    readonly missingFiles?: MissingFiles | undefined;
    /** By default a new memory, for comparisons with this state. */
    readonly snapshotMemory?: SnapshotMemory | undefined;
  } = {},
): RepositoryState {
  const { anchor, roots } = readRoots(layout, keysDirectory);
  return asInvalid(() => {
    const { nextRoot, shouldIncludeWaiting, missingFiles = 'refused' } = options;
    const { snapshotMemory = createSnapshotMemory() } = options;
    const root = newestOf(roots);
    const files = readLiveFiles({ layout, roots, hostRoot: nextRoot ?? root, missingFiles });
    const { timestamp, snapshot, targets } = files;
    const outdated = [timestamp, snapshot, targets].filter((file) => !isVouchedByRoot(file, root));
    const requireAccepted = (file: ParsedFile<'targets'>): void => {
      requireThreshold(file, rootAuthority(root, 'targets'));
      if (nextRoot === undefined || shouldIncludeWaiting === true || isVouchedByRoot(file, nextRoot)) return;
      if (!isSeen(file, { layout, live: files, roots, snapshotMemory }))
        requireThreshold(file, rootAuthority(nextRoot, 'targets'));
    };
    const read = (version: number) => readPending(layout, version, requireAccepted);
    const { version } = targets.signed;
    const above = restartsTargets(rolesOf(outdated), version) ? 0 : version;
    const newest = findNewest(layout, 'targets', above, read);
    const current = newest.file ?? targets;
    if (options.outdatedTargets === undefined && !isVouchedByRoot(current, root)) throw outdatedTargets();
    const { meta } = snapshot.signed;
    const live = { root, timestamp, snapshot, targets, delegated: readLiveDelegated(layout, meta, targets) };
    const restarts = readVersionRestarts(snapshot.signed);
    const listed = { meta, restarts };
    const { delegated, ignored } = findNewestDelegated(layout, listed, current);
    const restarted = readRestartedFiles(layout, listed, current);
    // Files below a version that restarts are those of the replaced key, and not newer files.
    const newer = above === version || newest.file !== undefined ? newest.ignored : [];
    const all = { targets: current, delegated, restarted, restarts, ignored: [...newer, ...ignored] };
    return { layout, anchor, live, ...all, roots, outdated: rolesOf(outdated), snapshotMemory };
  });
}

function rolesOf(files: readonly ParsedFile<LaterRole>[]): readonly LaterRole[] {
  return files.map(({ role }) => role);
}

/** @returns true if a file newer than the published one is signed and waits for the online keys */
export function isWaiting({ targets, live, delegated }: RepositoryState): boolean {
  if (targets !== live.targets) return true;
  return [...delegated].some(([name, file]) => !isSameFile(file, live.delegated.get(name)));
}

/**
 * @returns the version of the published snapshot where an older one is used, because the published one lists missing files
 */
export function passedOverSnapshot({ live }: RepositoryState): number | undefined {
  const { version } = live.timestamp.signed.meta['snapshot.json'];
  return version === live.snapshot.signed.version ? undefined : version;
}

/** @returns the state without waiting files, as hosts see it */
export function withoutWaiting(state: RepositoryState): RepositoryState {
  return { ...state, targets: state.live.targets, delegated: state.live.delegated };
}

/** @returns true for the same bytes */
export function isSameFile(file: ParsedFile<'targets'>, other: ParsedFile<'targets'> | undefined): boolean {
  return other !== undefined && Buffer.from(file.bytes).equals(other.bytes);
}

/**
 * Reads only the chain of roots, for ceremonies that must work when every other role is lost or expired.
 * @returns the bytes of the trusted root, and every root from it on
 * @throws WritError REPOSITORY_INVALID
 */
export function readRoots(
  layout: RepositoryLayout,
  keysDirectory?: string,
): { readonly anchor: Buffer; readonly roots: readonly ParsedFile<'root'>[] } {
  // Without this check, a publisher with an own root would get an error about the first missing file.
  if (listNames(layout.metadata).length === 0) throw noRepository(layout.directory);
  const anchor = readAnchor(layout, keysDirectory);
  return { anchor, roots: asInvalid(() => followRoots(layout, anchor)) };
}

function newestOf(roots: readonly ParsedFile<'root'>[]): ParsedFile<'root'> {
  const root = roots.at(-1);
  if (root !== undefined) return root;
  throw new WritError('INTERNAL', 'a chain of roots is empty');
}

function outdatedTargets(): WritError {
  const message = 'the targets are signed by keys that the root no longer lists';
  return new WritError('REPOSITORY_INVALID', `the repository does not verify: ${message}`, {
    facts: { role: 'targets', clientCode: 'SIGNATURE_THRESHOLD' },
    hint: "Run `writ root commit` with the same proposal again and with the new targets key: in --keys, or --signer 'targets=CMD'. A wrong key of a team is corrected after that: docs/operations.md, A stolen targets key.",
  });
}

function readAnchor(layout: RepositoryLayout, keysDirectory: string | undefined): Buffer {
  const first = join(layout.metadata, metadataName('root', 1));
  const bytes = readOwnRoot(keysDirectory) ?? readRepositoryFile(first, limits.maxRootBytes);
  if (bytes !== undefined) return bytes;
  throw noRepository(layout.directory);
}

/** @returns the publisher's own copy of a root; undefined where the directory has none */
export function readOwnRoot(keysDirectory: string | undefined): Buffer | undefined {
  return keysDirectory === undefined
    ? undefined
    : readRepositoryFile(join(keysDirectory, anchorName), limits.maxRootBytes);
}

function followRoots(layout: RepositoryLayout, anchor: Buffer): ParsedFile<'root'>[] {
  let set = trustFirstRoot(anchor);
  const roots = [set.root];
  for (let rotation = 0; rotation < limits.maxRootRotations; rotation += 1) {
    const name = metadataName('root', set.root.signed.version + 1);
    const bytes = readRepositoryFile(join(layout.metadata, name), limits.maxRootBytes);
    if (bytes === undefined) return roots;
    set = trustNextRoot(set, bytes);
    roots.push(set.root);
  }
  return roots;
}

/** Includes targets that hosts have seen. Without them, the next version would use their serials again. */
function isSeen(file: ParsedFile<'targets'>, published: PublishedSnapshot): boolean {
  const listings = readLaterListings(published).get('targets') ?? [];
  return listings.some(({ meta }) => isNamedBy(meta, file));
}

/** @throws WritError with the reason why hosts would refuse the file */
function readPending(
  layout: RepositoryLayout,
  version: number,
  requireAccepted: (file: ParsedFile<'targets'>) => void,
): ParsedFile<'targets'> {
  const path = join(layout.metadata, metadataName('targets', version));
  try {
    const file = parseEnvelope(readRequired(path, limits.maxTargetsBytes), 'targets');
    requireOwnVersion(file, version);
    requireAccepted(file);
    return file;
  } catch (error) {
    if (!isWritError(error) || !error.code.startsWith('DISK_')) throw error;
    // One unreadable file must not stop each command.
    const { message, facts } = error;
    throw new WritError('REPOSITORY_INVALID', message, { facts, cause: error });
  }
}

/** Reports each refusal as REPOSITORY_INVALID. The error code of a client is kept in its facts. */
function asInvalid<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw invalid(error);
  }
}

/**
 * @returns the error as REPOSITORY_INVALID. Errors that are not a WritError, and those of this machine's disk, are returned
 *   unchanged
 */
export function invalid(error: unknown): unknown {
  if (!isWritError(error) || error.code === 'REPOSITORY_INVALID' || error.code.startsWith('DISK_'))
    return error;
  return new WritError('REPOSITORY_INVALID', `the repository does not verify: ${error.message}`, {
    facts: { ...error.facts, clientCode: error.code },
    // The hint of a client does not help a publisher. An expired role is the exception, because its hint names the signers.
    // The hint is omitted for online roles, because it would name the command that has just failed.
    ...(error.code === 'METADATA_EXPIRED' && !isOnlineRole(String(error.facts['role']))
      ? { hint: error.hint }
      : {}),
    cause: error,
  });
}
