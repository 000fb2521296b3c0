// What each metadata file says, before it is signed: versions, ends of life, what it lists. Pure.
// How long a role lives is written into the root, so that everybody who signs later agrees about it.
import { createHash } from 'node:crypto';
import { WritError } from '../../core/errors.js';
import { type Digest, digestHex } from '../../core/names.js';
import { encodeReleaseInfo, parseReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import { keyId } from '../../core/tuf/signature-schemes.js';
import {
  type MetadataKey,
  type RootSigned,
  type SnapshotSigned,
  specVersion,
  type TargetFile,
  type TargetsSigned,
  type TimestampSigned,
  type TopLevelRole,
  topLevelRoles,
} from '../../core/tuf/tuf-metadata.js';

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
  readonly nowMs: number;
  readonly lifeMs: number;
}

/** With what we add to a file: the specification keeps members that it does not know. */
export type Ours<Signed> = Signed & { readonly writ: object };

export interface RoleHolders {
  readonly keys: readonly MetadataKey[];
  /** Of the people who hold them, in the same order; recorded for people under `writ.signers`. */
  readonly names?: readonly string[];
  readonly threshold: number;
}

/** @param holders keys and threshold of each role */
export function rootContent(
  edition: Edition,
  holders: Readonly<Record<TopLevelRole, RoleHolders>>,
  lives: RoleLives,
): Ours<RootSigned> {
  const keys = topLevelRoles.flatMap((name) => holders[name].keys.map((key) => [keyId(key), key] as const));
  const role = (name: TopLevelRole) => ({
    keyids: holders[name].keys.map(keyId),
    threshold: holders[name].threshold,
  });
  return {
    ...base('root', edition),
    writ: {
      ...signedAt(edition),
      livesMs: lives,
      signers: namesOf(topLevelRoles.map((name) => holders[name])),
    },
    consistent_snapshot: true,
    keys: Object.fromEntries(keys),
    roles: {
      root: role('root'),
      targets: role('targets'),
      snapshot: role('snapshot'),
      timestamp: role('timestamp'),
    },
  };
}

/** @returns names by key id, of the keys that have one */
function namesOf(holders: readonly RoleHolders[]): Record<string, string> {
  const named = holders.flatMap(({ keys, names = [] }) =>
    keys.flatMap((key, index) => {
      const name = names[index];
      return name === undefined ? [] : [[keyId(key), name] as const];
    }),
  );
  return Object.fromEntries(named);
}

/** @returns the lives that the root records; the defaults in roots of other publishers */
export function livesOf(root: RootSigned): RoleLives {
  const recorded =
    (root as { readonly writ?: { readonly livesMs?: Partial<RoleLives> } }).writ?.livesMs ?? {};
  const lifeOf = (role: TopLevelRole): number => {
    const lifeMs = recorded[role];
    return typeof lifeMs === 'number' && lifeMs >= 1000 ? lifeMs : defaultLives[role];
  };
  return {
    root: lifeOf('root'),
    targets: lifeOf('targets'),
    snapshot: lifeOf('snapshot'),
    timestamp: lifeOf('timestamp'),
  };
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
  const kept = (before as { readonly writ?: object } | undefined)?.writ;
  return {
    ...before,
    ...base('targets', edition),
    writ: { ...kept, ...ours, ...signedAt(edition) },
    targets,
  };
}

/** A metadata file that another one names. */
export interface NamedFile {
  readonly version: number;
  readonly bytes: Uint8Array;
}

/**
 * @param before what the snapshot before names: a role that vanished, or went back, would be refused by every host
 * @param files newest file of each role by name, `targets` among them
 */
export function snapshotContent(
  edition: Edition,
  before: SnapshotSigned['meta'],
  files: ReadonlyMap<string, NamedFile>,
): Ours<SnapshotSigned> {
  const newest = [...files].map(([role, file]) => [`${role}.json`, metaFile(file)] as const);
  return {
    ...base('snapshot', edition),
    writ: signedAt(edition),
    meta: { ...before, ...Object.fromEntries(newest) },
  };
}

/** `writ.signedAt` becomes the clock floor of every host: no host takes the world for younger. */
export function timestampContent(edition: Edition, snapshot: NamedFile): TimestampSigned {
  return {
    ...base('timestamp', edition),
    writ: signedAt(edition),
    meta: { 'snapshot.json': metaFile(snapshot) },
  };
}

function base<Role extends TopLevelRole>(role: Role, { version, nowMs, lifeMs }: Edition) {
  return { _type: role, spec_version: specVersion, version, expires: isoSeconds(nowMs + lifeMs) };
}

function signedAt({ nowMs }: Edition): { signedAt: string } {
  return { signedAt: isoSeconds(nowMs) };
}

function metaFile({ version, bytes }: NamedFile) {
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

/** @throws WritError USAGE for a text that hosts would refuse, or that could drive a terminal */
export function requireRevision(revision: string): void {
  requireText(revision, 'the revision');
}

/** @param what names the text in the message. @throws WritError USAGE, as requireRevision */
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
