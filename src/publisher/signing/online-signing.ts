// Signs snapshot and timestamp, and takes targets that wait for them live: the part that a server may do. Only
// signers of these two roles come in here; root and targets keys have no way in.
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { keyId } from '../../core/tuf/signature-schemes.js';
import { type OnlineRole, onlineRoles, type ParsedFile } from '../../core/tuf/tuf-metadata.js';
import { holderOf, type KeyDirectory, openKeysOf, requireKeysOf } from '../keys/key-directory.js';
import { type Signer, signMetadata } from '../keys/signer.js';
import {
  livesOf,
  type NamedFile,
  snapshotContent,
  timestampContent,
} from '../repository/metadata-content.js';
import { layoutOf } from '../repository/repository-layout.js';
import {
  isSameFile,
  isWaiting,
  type RepositoryState,
  readRepositoryState,
} from '../repository/repository-state.js';
import {
  type RepositoryWriter,
  type WriterOptions,
  withRepository,
} from '../repository/repository-writer.js';
import { dropUnfit } from './drop-unfit.js';
import { verifyAsClient } from './self-check.js';
import {
  type ClockCheck,
  type SigningClock,
  signedAheadMs,
  signedBy,
  signingTimeMs,
  sureClock,
} from './signing-time.js';

export type OnlineSigners = Readonly<Record<OnlineRole, readonly Signer[]>>;

/**
 * Opens the two online keys of a directory, and no other file of it but the publisher's copy of the root.
 * @throws WritError KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_NEEDED, PASSPHRASE_WRONG, REPOSITORY_INVALID
 */
export async function openOnlineSigners(repository: string, keys: KeyDirectory): Promise<OnlineSigners> {
  const root = readRepositoryState(layoutOf(repository), keys.path).live.root.signed;
  const snapshot = await requireKeysOf(keys, holderOf(root, 'snapshot'));
  return { snapshot, timestamp: await requireKeysOf(keys, holderOf(root, 'timestamp')) };
}

/** The signers, or the roles whose keys are missing. */
export type OnlineKeys = { readonly signers: OnlineSigners } | { readonly missing: readonly OnlineRole[] };

/** @throws WritError KEY_UNREADABLE, PASSPHRASE_* */
export async function findOnlineSigners(keys: KeyDirectory, { live }: RepositoryState): Promise<OnlineKeys> {
  const snapshot = await openKeysOf(keys, holderOf(live.root.signed, 'snapshot'));
  const timestamp = await openKeysOf(keys, holderOf(live.root.signed, 'timestamp'));
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
  /** A root that goes live right before the timestamp: between the two, hosts would refuse what is there. */
  readonly next?: { readonly root: ParsedFile<'root'>; readonly write: () => void };
}

/**
 * Signs, verifies as a client would, and goes live; the caller holds the repository's lock.
 * @returns the versions that hosts see now
 * @throws WritError REPOSITORY_INVALID (nothing was published), SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function signOnline(options: OnlineSigningOptions) {
  const { writer, state, signers, roles = onlineRoles, clock, next } = options;
  const { live, targets } = state;
  const root = next?.root ?? live.root;
  const time = signedBy(state, clock, root);
  const lives = livesOf(root.signed);
  let snapshot = { version: live.snapshot.signed.version, bytes: live.snapshot.bytes };
  // By the time that the timestamp will name, whatever the clock says.
  const expired = live.snapshot.expiresAtMs <= time.nowMs;
  if (isWaiting(state) || expired || roles.includes('snapshot') || state.outdated.includes('snapshot')) {
    const version = writer.nextVersion('snapshot', liveVersion(state, 'snapshot'));
    const edition = { version, ...time, lifeMs: lives.snapshot };
    const content = snapshotContent(edition, live.snapshot.signed.meta, namedFiles(state));
    snapshot = { version, bytes: await signMetadata(content, signers.snapshot) };
    writer.writeMetadata('snapshot', version, snapshot.bytes);
  }
  const version = liveVersion(state, 'timestamp') + 1;
  const content = timestampContent({ version, ...time, lifeMs: lives.timestamp }, snapshot);
  const timestamp = await signMetadata(content, signers.timestamp);
  await verifyAsClient({ state, timestamp, clock, next: next?.root });
  next?.write();
  writer.goLive(timestamp);
  return { targets: targets.signed.version, snapshot: snapshot.version, timestamp: version };
}

/**
 * Signers that were opened before a root took their keys away sign nothing more: not even a snapshot that would
 * be refused afterwards and are there.
 * @throws WritError KEYS_MISSING
 */
function requireListed({ live }: RepositoryState, signers: OnlineSigners): void {
  for (const role of onlineRoles) {
    const { keyids, threshold } = live.root.signed.roles[role];
    const listed = signers[role].filter(({ keys }) => keys.some((key) => keyids.includes(keyId(key))));
    if (listed.length >= threshold) continue;
    throw new WritError('KEYS_MISSING', `the root no longer lists the ${role} keys at hand`, {
      facts: { role, expected: threshold, actual: listed.length, keyIds: keyids },
      hint: 'Put the new keys in the place of the old ones.',
    });
  }
}

/** @returns the newest file of each role, the delegated ones too */
function namedFiles({ targets, delegated }: RepositoryState): ReadonlyMap<string, NamedFile> {
  const files = new Map([['targets', targets], ...delegated]);
  return new Map(
    [...files].map(([role, { signed, bytes }]) => [role, { version: signed.version, bytes }] as const),
  );
}

/** No honest count of signatures gets there: 30,000 years of one a second. */
const maxHonestVersion = 1e12;

/**
 * Fast-forward attack: a stolen key signed a version so high that none comes after it. A root that takes the key
 * away makes hosts forget both files (specification 5.3.11), so that counting may begin again.
 */
function liveVersion({ live, outdated }: RepositoryState, role: OnlineRole): number {
  const { version } = live[role].signed;
  const forgotten = outdated.includes('timestamp') || outdated.includes('snapshot');
  if (forgotten && version > maxHonestVersion) return 0;
  if (version < Number.MAX_SAFE_INTEGER) return version;
  throw new WritError('REPOSITORY_INVALID', `no version can follow the published ${role}`, {
    facts: { role, version },
    hint: `Its key was stolen: replace it with \`writ root rotate --replace ${role}=NEW.pub\`.`,
  });
}

export interface ResignOptions extends WriterOptions {
  readonly signers: OnlineSigners;
  readonly roles: readonly OnlineRole[];
  /** Where the publisher's copy of the root lies; the repository's own first root without it. */
  readonly keysDirectory?: string;
  readonly clockCheck?: ClockCheck | undefined;
}

export type ResignResult = Awaited<ReturnType<typeof resignOnline>>;

/**
 * `writ refresh`, and what the server does when a quarter of a life has passed or a publish waits.
 * @throws WritError REPOSITORY_LOCKED, REPOSITORY_INVALID, SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function resignOnline(options: ResignOptions) {
  return withRepository(options, async (writer) => {
    const { signers, roles } = options;
    const read = readRepositoryState(writer.layout, options.keysDirectory);
    const clock = await sureClock(options, read);
    const state = await dropUnfit(read, clock);
    requireNothingIgnored(state, signingTimeMs(state, clock.nowMs()));
    requireListed(state, signers);
    const aheadMs = signedAheadMs(state, clock.nowMs());
    const versions = await signOnline({ writer, state, signers, roles, clock });
    return {
      versions,
      /** How far the clock was behind what was signed before: its time was used. */
      ...given({ signedAheadMs: aheadMs }),
      /** The targets that were live before. */
      targetsBefore: state.live.targets.signed.version,
      /** Roles of which a newer version waited, and is live now. */
      wentLive: wentLive(state),
      /** Newer files that do not verify; they did not go live. */
      ignored: state.ignored,
    };
  });
}

/** @returns what waited and is live now, the top-level targets first */
function wentLive({ live, targets, delegated }: RepositoryState): readonly SignedRole[] {
  const teams = [...delegated].filter(([role, file]) => !isSameFile(file, live.delegated.get(role)));
  const waited = targets === live.targets ? teams : [['targets', targets] as const, ...teams];
  return waited.map(([role, { signed }]) => ({ role, version: signed.version }));
}

/**
 * Newer files that do not verify are somebody's mistake or attack, to be looked at. They stop the signing only
 * while the timestamp is young: hosts must not lose a good policy's freshness over a bad file beside it.
 */
function requireNothingIgnored(state: RepositoryState, nowMs: number): void {
  const { live, ignored } = state;
  const dueAtMs = live.timestamp.expiresAtMs - 0.75 * livesOf(live.root.signed).timestamp;
  if (ignored.length === 0 || isWaiting(state) || nowMs >= dueAtMs) return;
  throw new WritError('REPOSITORY_INVALID', `${ignored.join(', ')} does not verify and cannot be published`, {
    facts: { ignored },
    hint: 'Publish again, with the keys of the role.',
  });
}
