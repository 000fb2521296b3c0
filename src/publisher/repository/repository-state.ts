// The repository as it is on disk, verified against a root that its publisher holds: what the next version is
// built on. Signatures and the chain of roots count as for a client; expiry does not, or a repository that
// slept could never be woken. Somebody who can write to the directory must not get his own targets signed.
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
import { createSnapshotMemory, type SnapshotMemory } from './settled-snapshots.js';
import { readVersionRestarts, type VersionRestarts } from './version-restarts.js';

/** All four roles are there and belong together; of the delegated ones those that verify. */
export type LiveSet = Required<Omit<TrustedSet, 'clockFloorMs'>>;

export interface RepositoryState {
  readonly layout: RepositoryLayout;
  /** The root that everything was verified from. */
  readonly anchor: Buffer;
  /** What clients see now. */
  readonly live: LiveSet;
  /** The newest targets that verify: those of `live`, or newer ones that wait for the online keys. */
  readonly targets: ParsedFile<'targets'>;
  /** Under those targets, the newest file of each delegated role: live, or waiting. */
  readonly delegated: DelegatedFiles;
  /** The last published file of each delegated role with restarted versions, until a snapshot lists the role (adr/0073). */
  readonly restarted: DelegatedFiles;
  readonly restarts: VersionRestarts;
  /** Newer targets files that do not verify: nothing is built on them, and nothing takes their version. */
  readonly ignored: readonly IgnoredFile[];
  /** Every root from the anchor to the newest, which is that of `live`. */
  readonly roots: readonly ParsedFile<'root'>[];
  /** Roles whose live file an older root vouches for and the newest does not: hosts wait for them. */
  readonly outdated: readonly LaterRole[];
  readonly snapshotMemory: SnapshotMemory;
}

/** Name of the root in a directory of keys: the publisher's own copy, out of reach of whoever serves. */
export const anchorName = 'root.json';

/**
 * @param keysDirectory where the publisher's copy of the first root lies; without one, the repository's own
 *   first root is believed
 * @param options `nextRoot`: the root that is to be committed; waiting targets count only if it lists their keys too, or a snapshot
 *   listed them, unless `shouldIncludeWaiting`. `accepted` only where they are signed again and shown to a person: targets of a key that the root no
 *   longer lists may be those of a thief, and must never be built on unseen
 * @throws WritError REPOSITORY_INVALID with the code of what is wrong among its facts
 */
export function readRepositoryState(
  layout: RepositoryLayout,
  keysDirectory?: string,
  options: {
    readonly outdatedTargets?: 'accepted';
    readonly nextRoot?: ParsedFile<'root'> | undefined;
    readonly shouldIncludeWaiting?: boolean | undefined;
    readonly missingFiles?: MissingFiles | undefined;
    /** Left out: a new one, for the comparisons with this state. */
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
    // Below a version that begins again are the files of the replaced key, which are no newer files.
    const newer = above === version || newest.file !== undefined ? newest.ignored : [];
    const all = { targets: current, delegated, restarted, restarts, ignored: [...newer, ...ignored] };
    return { layout, anchor, live, ...all, roots, outdated: rolesOf(outdated), snapshotMemory };
  });
}

function rolesOf(files: readonly ParsedFile<LaterRole>[]): readonly LaterRole[] {
  return files.map(({ role }) => role);
}

/** @returns true if something newer than what hosts see is signed and waits for the online keys */
export function isWaiting({ targets, live, delegated }: RepositoryState): boolean {
  if (targets !== live.targets) return true;
  return [...delegated].some(([name, file]) => !isSameFile(file, live.delegated.get(name)));
}

/** @returns the version of the published snapshot where an older one is used, because it lists missing files */
export function passedOverSnapshot({ live }: RepositoryState): number | undefined {
  const { version } = live.timestamp.signed.meta['snapshot.json'];
  return version === live.snapshot.signed.version ? undefined : version;
}

/** @returns the state as hosts see it */
export function withoutWaiting(state: RepositoryState): RepositoryState {
  return { ...state, targets: state.live.targets, delegated: state.live.delegated };
}

/** @returns true for the same bytes */
export function isSameFile(file: ParsedFile<'targets'>, other: ParsedFile<'targets'> | undefined): boolean {
  return other !== undefined && Buffer.from(file.bytes).equals(other.bytes);
}

/**
 * The chain of roots alone, for ceremonies: it holds when every other role is lost or expired.
 * @returns the anchor as it is there, and every root from it on
 * @throws WritError REPOSITORY_INVALID
 */
export function readRoots(
  layout: RepositoryLayout,
  keysDirectory?: string,
): { readonly anchor: Buffer; readonly roots: readonly ParsedFile<'root'>[] } {
  // With a root of the publisher's own the first file that is missing would be blamed in its place.
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

/** @returns the publisher's own copy of a root, where there is one */
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

/** Targets that hosts have seen are signed again: without them, the next version would use their serials again. */
function isSeen(file: ParsedFile<'targets'>, published: PublishedSnapshot): boolean {
  const listings = readLaterListings(published).get('targets') ?? [];
  return listings.some(({ meta }) => isNamedBy(meta, file));
}

/** @throws WritError why hosts would refuse the file */
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

/** Every refusal on the way is one answer to the publisher; what a client would say is kept in its facts. */
function asInvalid<T>(act: () => T): T {
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
    // What a host is told to do is no help to who holds the repository; who signs what has expired is, except for what is
    // signed right now: the command that failed would be its own way out.
    ...(error.code === 'METADATA_EXPIRED' && !isOnlineRole(String(error.facts['role']))
      ? { hint: error.hint }
      : {}),
    cause: error,
  });
}
