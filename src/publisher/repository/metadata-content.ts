// Builds the unsigned content of each metadata file: versions, expiry times, entries. Pure. The root records the validity
// period of each role, so that all later signers use the same value.
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

/** Milliseconds from the signing of a role to its expiry. */
export type ValidityPeriods = Readonly<Record<TopLevelRole, number>>;

const dayMs = 86_400_000;
export const defaultValidityPeriods: ValidityPeriods = {
  root: 365 * dayMs,
  targets: 365 * dayMs,
  snapshot: 30 * dayMs,
  timestamp: 7 * dayMs,
};

/** The version and the times of a file that is about to be signed. */
export interface Edition {
  readonly version: number;
  /** The signing time in epoch milliseconds. Hosts use it as the lower bound of the time. */
  readonly nowMs: number;
  readonly validityMs: number;
  /** An operator confirmed the clock. */
  readonly stated?: true;
}

/** A signed part with the members that Writ adds. The specification requires clients to ignore unknown members. */
export type WithWrit<Signed> = Signed & { readonly writ: object };

/** @returns one value for each top-level role */
export function perRole<T>(of: (role: TopLevelRole) => T): Readonly<Record<TopLevelRole, T>> {
  return { root: of('root'), targets: of('targets'), snapshot: of('snapshot'), timestamp: of('timestamp') };
}

/**
 * Creates the signed part of a root. Signs and writes nothing, and throws nothing.
 * @param holders keys and threshold of each role. A key of several roles is listed once
 * @returns the root: `expires` is `nowMs + validityMs` in whole seconds (UTC). Its `writ` has the signing time, the validity
 *   periods in ms (`livesMs`), and `signers`: the names of the keys, by key id, for people
 */
export function rootContent(
  edition: Edition,
  holders: Readonly<
    Record<TopLevelRole, { readonly keys: readonly PublicKey[]; readonly threshold: number }>
  >,
  validity: ValidityPeriods,
): WithWrit<RootSigned> {
  const keys = topLevelRoles.flatMap((role) => holders[role].keys);
  const signers = Object.fromEntries(keys.map(({ keyId, name }) => [keyId, name]));
  return {
    ...baseMembers('root', edition),
    writ: { ...signedAt(edition), livesMs: validity, signers },
    consistent_snapshot: true,
    keys: Object.fromEntries(keys.map(({ keyId, key }) => [keyId, key])),
    roles: perRole((role) => {
      const { keys: own, threshold } = holders[role];
      return { keyids: own.map(({ keyId }) => keyId), threshold };
    }),
  };
}

/** @returns the validity periods that the root records; the defaults for roots of other publishers */
export function readValidityPeriods(root: RootSigned): ValidityPeriods {
  const recorded =
    (root as { readonly writ?: { readonly livesMs?: Partial<ValidityPeriods> } }).writ?.livesMs ?? {};
  return perRole((role) => {
    const validityMs = recorded[role];
    return typeof validityMs === 'number' && validityMs >= 1000 ? validityMs : defaultValidityPeriods[role];
  });
}

/**
 * Creates the signed part of a targets role. Signs and writes nothing, and throws nothing.
 * @param targets all entries of the new version, by path; the entries of `before` are not kept
 * @param before the previous version; its other members, such as delegations, are kept. Undefined for the first version
 * @param furtherMembers further members of `writ`; they replace members of the same name in `before`
 * @returns the targets with version, expiry and signing time of the edition; `writ.clock` is never kept from `before`
 */
export function targetsContent(
  edition: Edition,
  targets: Readonly<Record<string, TargetFile>>,
  before?: TargetsSigned,
  furtherMembers: object = {},
): WithWrit<TargetsSigned> {
  // The confirmation of the clock applied to the previous version only.
  const { clock: _, ...kept } =
    (before as { readonly writ?: Readonly<Record<string, unknown>> } | undefined)?.writ ?? {};
  const writ = { ...kept, ...furtherMembers, ...signedAt(edition) };
  return { ...before, ...baseMembers('targets', edition), writ, targets };
}

/** A metadata file that a snapshot or timestamp lists. */
export interface VersionedFile {
  readonly version: number;
  readonly bytes: Uint8Array;
}

/**
 * Creates the signed part of a snapshot. Signs and writes nothing, and throws nothing.
 * @param before the entries of the previous snapshot, because every host refuses a role that is removed or older; and the roles
 *   with restarted versions
 * @param files the newest file of each role by name, including `targets`
 * @returns the snapshot. `meta` has all entries of `before`, replaced by those of `files`, as `targets.json` with version,
 *   length in bytes and SHA-256; `writ.restarts` is absent without restarted versions
 */
export function snapshotContent(
  edition: Edition,
  before: { readonly meta: SnapshotSigned['meta']; readonly restarts?: VersionRestarts },
  files: ReadonlyMap<string, VersionedFile>,
): WithWrit<SnapshotSigned> {
  const newest = [...files].map(([role, file]) => [`${role}.json`, describeListedFile(file)] as const);
  const meta = { ...before.meta, ...Object.fromEntries(newest) };
  const { restarts } = before;
  const ours =
    restarts === undefined || restarts.size === 0 ? {} : { restarts: Object.fromEntries(restarts) };
  return { ...baseMembers('snapshot', edition), writ: { ...signedAt(edition), ...ours }, meta };
}

/** `writ.signedAt` becomes the clock floor of every host: hosts refuse to use an earlier time. */
export function timestampContent(edition: Edition, snapshot: VersionedFile): TimestampSigned {
  const meta = { 'snapshot.json': describeListedFile(snapshot) };
  return { ...baseMembers('timestamp', edition), writ: signedAt(edition), meta };
}

function baseMembers<Role extends TopLevelRole>(role: Role, { version, nowMs, validityMs }: Edition) {
  return { _type: role, spec_version: specVersion, version, expires: isoSeconds(nowMs + validityMs) };
}

function signedAt({ nowMs, stated }: Edition): { signedAt: string } {
  return { signedAt: isoSeconds(nowMs), ...(stated === undefined ? {} : { clock: 'stated' }) };
}

/** @returns the entry of a file in a snapshot or timestamp */
export function describeListedFile({ version, bytes }: VersionedFile) {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { version, length: bytes.length, hashes: { sha256 } };
}

/** @returns a time in the form of the specification: whole seconds, UTC */
export function isoSeconds(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19)}Z`;
}

/** @returns the target entry that makes this release the head of its channel */
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

/** @returns the listed releases, sorted by path. @throws WritError TARGET_MALFORMED */
export function parseReleases(
  targets: Pick<TargetsSigned, 'targets'>,
): { path: string; file: TargetFile; release: ReleaseInfo }[] {
  return Object.entries(targets.targets)
    .map(([path, file]) => ({ path, file, release: parseReleaseInfo(file.custom, path) }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

const maxTextCharacters = 200;
// Canonical JSON writes control characters unescaped, and JSON parsers reject them.
const textCharacters = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u;

/**
 * @param what names the text in the message
 * @throws WritError USAGE for a text that hosts would refuse, or that could control a terminal
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
