// What each metadata file says, before it is signed: versions, ends of life, what it lists. Pure.
// How long a role lives is written into the root, so that everybody who signs later agrees about it.
import { createHash } from 'node:crypto';
import { WritError } from '../../core/errors.js';
import { type Digest, digestHex } from '../../core/names.js';
import { encodeReleaseInfo, parseReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import {
  type RootSigned,
  type SnapshotSigned,
  specVersion,
  type TargetFile,
  type TargetsSigned,
  type TimestampSigned,
  type TopLevelRole,
  topLevelRoles,
} from '../../core/tuf/tuf-metadata.js';
import type { PublicKey } from '../keys/public-key.js';
import type { VersionRestarts } from './version-restarts.js';

/** Milliseconds from a role's signing to its expiry. */
export type RoleLives = Readonly<Record<TopLevelRole, number>>;

const dayMs = 86_400_000;
export const defaultLives: RoleLives = {
  root: 365 * dayMs,
  targets: 365 * dayMs,
  snapshot: 30 * dayMs,
  timestamp: 7 * dayMs,
};

/** When a file is signed, and as which version. */
export interface Edition {
  readonly version: number;
  /** When it is signed: what hosts take the time for, where the clock is behind that. */
  readonly nowMs: number;
  readonly lifeMs: number;
  /** A person vouches for the clock. */
  readonly stated?: true;
}

/** With what we add to a file: the specification keeps members that it does not know. */
export type Ours<Signed> = Signed & { readonly writ: object };

/** @returns one value a role */
export function perRole<T>(of: (role: TopLevelRole) => T): Readonly<Record<TopLevelRole, T>> {
  return { root: of('root'), targets: of('targets'), snapshot: of('snapshot'), timestamp: of('timestamp') };
}

/** @param holders keys and threshold of each role; the names of the keys are for people, under `writ.signers` */
export function rootContent(
  edition: Edition,
  holders: Readonly<
    Record<TopLevelRole, { readonly keys: readonly PublicKey[]; readonly threshold: number }>
  >,
  lives: RoleLives,
): Ours<RootSigned> {
  const keys = topLevelRoles.flatMap((role) => holders[role].keys);
  const signers = Object.fromEntries(keys.map(({ keyId, name }) => [keyId, name]));
  return {
    ...base('root', edition),
    writ: { ...signedAt(edition), livesMs: lives, signers },
    consistent_snapshot: true,
    keys: Object.fromEntries(keys.map(({ keyId, key }) => [keyId, key])),
    roles: perRole((role) => {
      const { keys: own, threshold } = holders[role];
      return { keyids: own.map(({ keyId }) => keyId), threshold };
    }),
  };
}

/** @returns the lives that the root records; the defaults in roots of other publishers */
export function livesOf(root: RootSigned): RoleLives {
  const recorded =
    (root as { readonly writ?: { readonly livesMs?: Partial<RoleLives> } }).writ?.livesMs ?? {};
  return perRole((role) => {
    const lifeMs = recorded[role];
    return typeof lifeMs === 'number' && lifeMs >= 1000 ? lifeMs : defaultLives[role];
  });
}

/**
 * @param before the version before: what it says beside its targets, as delegations, is carried on
 * @param ours further members of `writ`
 */
export function targetsContent(
  edition: Edition,
  targets: Readonly<Record<string, TargetFile>>,
  before?: TargetsSigned,
  ours: object = {},
): Ours<TargetsSigned> {
  // What was said of the clock was said of the version before.
  const { clock: _, ...kept } =
    (before as { readonly writ?: Readonly<Record<string, unknown>> } | undefined)?.writ ?? {};
  const writ = { ...kept, ...ours, ...signedAt(edition) };
  return { ...before, ...base('targets', edition), writ, targets };
}

/** A metadata file that another one names. */
export interface NamedFile {
  readonly version: number;
  readonly bytes: Uint8Array;
}

/**
 * @param before what the snapshot before lists, because every host refuses a role that vanished or went back; and the roles
 *   with restarted versions
 * @param files newest file of each role by name, `targets` among them
 */
export function snapshotContent(
  edition: Edition,
  before: { readonly meta: SnapshotSigned['meta']; readonly restarts?: VersionRestarts },
  files: ReadonlyMap<string, NamedFile>,
): Ours<SnapshotSigned> {
  const newest = [...files].map(([role, file]) => [`${role}.json`, describeListedFile(file)] as const);
  const meta = { ...before.meta, ...Object.fromEntries(newest) };
  const { restarts } = before;
  const ours =
    restarts === undefined || restarts.size === 0 ? {} : { restarts: Object.fromEntries(restarts) };
  return { ...base('snapshot', edition), writ: { ...signedAt(edition), ...ours }, meta };
}

/** `writ.signedAt` becomes the clock floor of every host: no host takes the world for younger. */
export function timestampContent(edition: Edition, snapshot: NamedFile): TimestampSigned {
  const meta = { 'snapshot.json': describeListedFile(snapshot) };
  return { ...base('timestamp', edition), writ: signedAt(edition), meta };
}

function base<Role extends TopLevelRole>(role: Role, { version, nowMs, lifeMs }: Edition) {
  return { _type: role, spec_version: specVersion, version, expires: isoSeconds(nowMs + lifeMs) };
}

function signedAt({ nowMs, stated }: Edition): { signedAt: string } {
  return { signedAt: isoSeconds(nowMs), ...(stated === undefined ? {} : { clock: 'stated' }) };
}

/** @returns how a snapshot lists a file */
export function describeListedFile({ version, bytes }: NamedFile) {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { version, length: bytes.length, hashes: { sha256 } };
}

/** The specification's form of a time: whole seconds, UTC. */
export function isoSeconds(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19)}Z`;
}

/** @returns the entry that puts this release at the head of its channel */
export function entryOf(
  release: ReleaseInfo,
  archive: { readonly archiveDigest: Digest; readonly archiveBytes: number },
): TargetFile {
  return {
    length: archive.archiveBytes,
    hashes: { sha256: digestHex(archive.archiveDigest) },
    custom: { writ: encodeReleaseInfo(release) },
  };
}

/** @returns every release that the targets list, by path. @throws WritError TARGET_MALFORMED */
export function releasesOf(
  targets: Pick<TargetsSigned, 'targets'>,
): { path: string; file: TargetFile; release: ReleaseInfo }[] {
  return Object.entries(targets.targets)
    .map(([path, file]) => ({ path, file, release: parseReleaseInfo(file.custom, path) }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

const maxTextCharacters = 200;
// Canonical JSON writes control characters as they are, and no JSON parser takes them back.
const textCharacters = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u;

/**
 * @param what names the text in the message
 * @throws WritError USAGE for a text that hosts would refuse, or that could drive a terminal
 */
export function requireText(text: string, what: string): void {
  if (text.length > maxTextCharacters) {
    throw new WritError('USAGE', `${what} is too long`, {
      facts: { expected: maxTextCharacters, actual: text.length },
    });
  }
  if (textCharacters.test(text)) return;
  throw new WritError('USAGE', `${what} has a control or format character`, {
    hint: 'Give one line of plain text.',
  });
}
