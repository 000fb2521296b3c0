// Signs snapshot and timestamp, and publishes waiting targets: the part of signing that a server may do. Its functions
// accept signers of these two roles only, so that a server never needs a root or targets key.
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { beginsAgain, forgetsVersions, maxVersion } from '../../core/tuf/metadata-version.js';
import {
  listedRole,
  type MetaFile,
  type OnlineRole,
  onlineRoles,
  type ParsedFile,
} from '../../core/tuf/tuf-metadata.js';
import { type KeyDirectory, openKeysOf, requireKeysOf, signingAuthorityOf } from '../keys/key-directory.js';
import { type Signer, signMetadata } from '../keys/signer.js';
import {
  describeListedFile,
  readValidityPeriods,
  snapshotContent,
  timestampContent,
  type VersionedFile,
} from '../repository/metadata-content.js';
import {
  layoutOf,
  metadataName,
  noVersionFollows,
  reachableOnDisk,
  readRepositoryFile,
} from '../repository/repository-layout.js';
import {
  isSameFile,
  isWaiting,
  type RepositoryState,
  readRepositoryState,
} from '../repository/repository-state.js';
import type { RepositoryWriter } from '../repository/repository-writer.js';
import { keepSeenListings } from '../repository/seen-files.js';
import type { VersionRestarts } from '../repository/version-restarts.js';
import { verifyAsClient } from './self-check.js';
import { describeSigningTime, type SigningClock } from './signing-time.js';

export type OnlineSigners = Readonly<Record<OnlineRole, readonly Signer[]>>;

/**
 * Opens the two online keys of a directory, and of its other files only the publisher's copy of the root.
 * @throws WritError KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_NEEDED, PASSPHRASE_WRONG, REPOSITORY_INVALID
 */
export async function openOnlineSigners(repository: string, keys: KeyDirectory): Promise<OnlineSigners> {
  // Only the root counts here.
  const reading = { missingFiles: 'accepted' } as const;
  const root = readRepositoryState(layoutOf(repository), keys.path, reading).live.root.signed;
  const snapshot = await requireKeysOf(keys, signingAuthorityOf(root, 'snapshot'));
  return { snapshot, timestamp: await requireKeysOf(keys, signingAuthorityOf(root, 'timestamp')) };
}

/** The signers, or the roles with missing keys. */
export type OnlineKeys = { readonly signers: OnlineSigners } | { readonly missing: readonly OnlineRole[] };

/**
 * @returns the signers of snapshot and timestamp, or the roles without enough available keys
 * @throws WritError KEY_UNREADABLE, PASSPHRASE_*
 */
export async function findOnlineSigners(keys: KeyDirectory, { live }: RepositoryState): Promise<OnlineKeys> {
  const snapshot = await openKeysOf(keys, signingAuthorityOf(live.root.signed, 'snapshot'));
  const timestamp = await openKeysOf(keys, signingAuthorityOf(live.root.signed, 'timestamp'));
  if (snapshot !== undefined && timestamp !== undefined) return { signers: { snapshot, timestamp } };
  const opened = { snapshot, timestamp };
  return { missing: (['snapshot', 'timestamp'] as const).filter((role) => opened[role] === undefined) };
}

/** A role that lists releases, and the version of it that was signed. */
export interface SignedRole {
  readonly role: string;
  readonly version: number;
}

export type SignedVersions = Awaited<ReturnType<typeof signOnline>>;

export interface OnlineSigningOptions {
  readonly writer: RepositoryWriter;
  readonly state: RepositoryState;
  readonly signers: OnlineSigners;
  /** Both by default; `timestamp` alone signs the snapshot too when newer targets wait. */
  readonly roles?: readonly OnlineRole[];
  readonly clock: SigningClock;
  /** A root that is published right before the timestamp, because hosts refuse the repository between the two. */
  readonly next?: { readonly root: ParsedFile<'root'>; readonly write: () => void };
}

/**
 * Signs, verifies as a client would, and publishes the result. The caller has the lock of the repository.
 * @returns the versions that hosts see now
 * @throws WritError REPOSITORY_INVALID (nothing was published), SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function signOnline(options: OnlineSigningOptions) {
  const { writer, signers, roles = onlineRoles, clock, next } = options;
  const { state, restarts } = restartVersions(keepListings(options.state));
  const { live, targets } = state;
  const root = next?.root ?? live.root;
  const time = describeSigningTime(state, clock, root);
  const validityMs = readValidityPeriods(root.signed);
  const before: VersionedFile = { version: live.snapshot.signed.version, bytes: live.snapshot.bytes };
  let signed: VersionedFile | undefined;
  // By the signing time, which is later than the clock where an earlier timestamp was signed ahead.
  const expired = live.snapshot.expiresAtMs <= time.nowMs;
  // A root that replaces either key makes hosts forget the snapshot, which may be that of a thief with older files.
  const isForgotten = forgetsVersions(state.outdated) && signers.snapshot.length > 0;
  const isOutdated = state.outdated.includes('snapshot') || isForgotten;
  if (isWaiting(state) || expired || roles.includes('snapshot') || isOutdated) {
    const next = writer.nextVersion('snapshot', requireLiveVersion(state, 'snapshot'));
    const version = forgetsVersions(state.outdated) ? next + versionsAheadOfCopy : next;
    const edition = { version, ...time, validityMs: validityMs.snapshot };
    const { meta } = live.snapshot.signed;
    const content = snapshotContent(edition, { meta, restarts }, listNewestFiles(state));
    signed = { version, bytes: await signMetadata(content, signers.snapshot) };
  }
  const snapshot = signed ?? before;
  const version = requireLiveVersion(state, 'timestamp') + 1;
  const content = timestampContent({ version, ...time, validityMs: validityMs.timestamp }, snapshot);
  const timestamp = await signMetadata(content, signers.timestamp);
  await verifyAsClient({ state, timestamp, snapshot: signed, clock, next: next?.root });
  // A refused snapshot must not be on disk, because a file that a snapshot lists counts as seen by hosts (seen-files).
  if (signed !== undefined) writeSnapshot(writer, signed);
  next?.write();
  writer.publishTimestamp(timestamp);
  return { targets: targets.signed.version, snapshot: snapshot.version, timestamp: version };
}

/** @throws WritError REPOSITORY_INVALID where the disk has other bytes than were verified; DISK_* */
function writeSnapshot(writer: RepositoryWriter, { version, bytes }: VersionedFile): void {
  writer.writeMetadata('snapshot', version, bytes);
  const path = join(writer.layout.metadata, metadataName('snapshot', version));
  if (readRepositoryFile(path, bytes.length)?.equals(bytes)) return;
  throw new WritError('REPOSITORY_INVALID', `${path} changed before it was published`, { facts: { path } });
}

/** @returns the newest file of targets and of each delegated role, by role */
function listNewestFiles({ targets, delegated }: RepositoryState): ReadonlyMap<string, VersionedFile> {
  const files = new Map([['targets', targets], ...delegated]);
  return new Map(
    [...files].map(([role, { signed, bytes }]) => [role, { version: signed.version, bytes }] as const),
  );
}

function requireLiveVersion({ live, outdated }: RepositoryState, role: OnlineRole): number {
  const { version } = live[role].signed;
  if (forgetsVersions(outdated) && beginsAgain(version)) return 0;
  if (version < maxVersion) return version;
  throw noVersionFollows(role, version);
}

/**
 * Caches keep a numbered file for ever. A repository that was restored from a copy has fewer snapshots than the lost server
 * had signed: with new online keys hosts accept any version, so the next one is above all of these.
 */
const versionsAheadOfCopy = 1000;

/** @returns the state with what the next snapshot keeps in place of what the published one lists */
function keepListings(state: RepositoryState): RepositoryState {
  const { snapshot } = state.live;
  const meta = keepSeenListings(state, new Set(state.delegated.keys()));
  return {
    ...state,
    live: { ...state.live, snapshot: { ...snapshot, signed: { ...snapshot.signed, meta } } },
  };
}

/** A state that the next snapshot lists, and what that snapshot records beside it. */
interface RestartedState {
  readonly state: RepositoryState;
  readonly restarts: VersionRestarts;
}

/**
 * Begins the versions of roles again where the root makes hosts forget them. A file of a team is left out until the team
 * signs, because a lower version with older releases would be a rollback; the snapshot records it.
 */
function restartVersions(state: RepositoryState): RestartedState {
  const { live, outdated, delegated, targets, layout } = state;
  if (!forgetsVersions(outdated)) return { state, restarts: state.restarts };
  const { meta } = live.snapshot.signed;
  const lower = (role: string): number => reachableOnDisk(layout, role, 0).at(-1) ?? 0;
  const restarts = new Map(state.restarts);
  for (const [name, listed] of Object.entries(meta)) {
    const role = listedRole(name);
    if (!beginsAgain(listed.version)) continue;
    if (role === 'targets') {
      if (targets !== live.targets) restarts.set(role, { ...listed, after: targets.signed.version - 1 });
      continue;
    }
    const file = live.delegated.get(role);
    // The digest, because the thief's snapshot may list the version alone.
    const named = file && describeListedFile({ version: listed.version, bytes: file.bytes });
    restarts.set(role, { ...(named ?? listed), after: lower(role) });
  }
  const { version } = live.snapshot.signed;
  if (beginsAgain(version)) restarts.set('snapshot', { version, after: lower('snapshot') });
  const isKept = ([name, { version: one }]: [string, MetaFile]): boolean =>
    name === 'targets.json' || !beginsAgain(one);
  const kept = Object.fromEntries(Object.entries(meta).filter(isKept));
  const snapshot = { ...live.snapshot, signed: { ...live.snapshot.signed, meta: kept } };
  const files = [...delegated].filter(([, { signed }]) => !beginsAgain(signed.version));
  return { state: { ...state, live: { ...live, snapshot }, delegated: new Map(files) }, restarts };
}

/** @returns the roles with a newer version than hosts see, the top-level targets first */
export function listWaitingRoles({ live, targets, delegated }: RepositoryState): readonly SignedRole[] {
  const teams = [...delegated].filter(([role, file]) => !isSameFile(file, live.delegated.get(role)));
  const waited = targets === live.targets ? teams : [['targets', targets] as const, ...teams];
  return waited.map(([role, { signed }]) => ({ role, version: signed.version }));
}

/** @returns when a quarter of the validity period of the timestamp has passed, epoch milliseconds */
export function timestampDueAtMs({ live }: RepositoryState): number {
  return live.timestamp.expiresAtMs - 0.75 * readValidityPeriods(live.root.signed).timestamp;
}
