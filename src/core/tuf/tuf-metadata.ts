// TUF metadata as types (specification 1.0.34 section 4), and the parsers of its files. They check structure only:
// signature-schemes.ts verifies signatures, and trusted-set.ts has the order of the checks.

import { WritError } from '../errors.js';
import { parseIsoTime } from '../release/release.js';
import { canonicalBytes } from '../text/canonical-json.js';
import { type JsonObject, type JsonValue, parseStrictJson } from '../text/strict-json.js';
import { checkDelegations } from './delegations.js';
import * as at from './metadata-members.js';

export const specVersion = '1.0.34';

/** Pattern of a version in the name of a file. It may match numbers above maxVersion of metadata-version.ts. */
export const versionPattern = '[1-9][0-9]{0,15}';

export const topLevelRoles = ['root', 'timestamp', 'snapshot', 'targets'] as const;
export type TopLevelRole = (typeof topLevelRoles)[number];

/** Roles that a server signs automatically, in the order of signing. */
export const onlineRoles = ['snapshot', 'timestamp'] as const;
export type OnlineRole = (typeof onlineRoles)[number];

/**
 * @param role name of any role, also a delegated one
 * @returns true for exactly `snapshot` and `timestamp`; false for every other name, the empty one included. Throws nothing.
 */
export function isOnlineRole(role: string): role is OnlineRole {
  return onlineRoles.some((online) => online === role);
}

export interface MetadataKey {
  readonly keytype: string;
  readonly scheme: string;
  readonly keyval: { readonly public: string };
}

export interface RoleKeys {
  readonly keyids: readonly string[];
  readonly threshold: number;
}

export interface MetadataSignature {
  readonly keyid: string;
  readonly sig: string;
}

/** A file of the repository; `signed` keeps each received member, known or not. */
export interface Envelope<Signed> {
  readonly signatures: readonly MetadataSignature[];
  readonly signed: Signed;
}

interface SignedBase<Type extends string> {
  readonly _type: Type;
  readonly spec_version: string;
  readonly version: number;
  /** ISO 8601 in UTC, as 2027-11-21T00:00:00Z */
  readonly expires: string;
}

export interface RootSigned extends SignedBase<'root'> {
  readonly consistent_snapshot?: boolean;
  readonly keys: Readonly<Record<string, MetadataKey>>;
  readonly roles: Readonly<Record<TopLevelRole, RoleKeys>>;
}

export interface MetaFile {
  readonly version: number;
  readonly length?: number;
  readonly hashes?: Readonly<Record<string, string>>;
}

export interface TimestampSigned extends SignedBase<'timestamp'> {
  readonly meta: { readonly 'snapshot.json': MetaFile };
  /** An extension of Writ: the time of the signature. The clock floor of a host is the greatest accepted one. */
  readonly writ?: { readonly signedAt: string };
}

export interface SnapshotSigned extends SignedBase<'snapshot'> {
  readonly meta: Readonly<Record<string, MetaFile>>;
}

export interface TargetFile {
  readonly length: number;
  readonly hashes: Readonly<Record<string, string>>;
  readonly custom?: unknown;
}

/** A targets role that another targets role authorizes for a part of the paths (specification 4.5). */
export interface DelegatedRole extends RoleKeys {
  readonly name: string;
  /** Undefined is false: the search continues with later delegations if this role does not list a path. */
  readonly terminating?: boolean;
  /** Patterns with `*` and `?`. Exactly one of this and path_hash_prefixes is present. */
  readonly paths?: readonly string[];
  /** Prefixes of the SHA-256 of a path, in lower-case hex. */
  readonly path_hash_prefixes?: readonly string[];
}

export interface Delegations {
  readonly keys: Readonly<Record<string, MetadataKey>>;
  /** In the order of the search. */
  readonly roles: readonly DelegatedRole[];
}

export interface TargetsSigned extends SignedBase<'targets'> {
  readonly targets: Readonly<Record<string, TargetFile>>;
  readonly delegations?: Delegations;
}

export interface SignedOf {
  readonly root: RootSigned;
  readonly timestamp: TimestampSigned;
  readonly snapshot: SnapshotSigned;
  readonly targets: TargetsSigned;
}

/** A metadata file with a valid structure. Its signatures are not verified yet. */
export interface ParsedFile<Role extends TopLevelRole> extends Envelope<SignedOf[Role]> {
  readonly role: Role;
  /** The name of the role: of a top-level role or of a delegated targets role. */
  readonly name: string;
  /** The received bytes, which the trust store keeps. */
  readonly bytes: Uint8Array;
  /** Canonical form of `signed` with each received member: the bytes that signatures cover. */
  readonly signedBytes: Uint8Array;
  readonly expiresAtMs: number;
}

/**
 * Parses one metadata file strictly (specification 4.2 to 4.6). Unknown members are kept, because the signatures cover them.
 * @param role required `_type` of the file
 * @param name of a delegated role, whose `_type` is `targets`
 * @throws WritError METADATA_MALFORMED with the role and the wrong member; SIGNATURE_DUPLICATE if a key id signs twice
 */
export function parseEnvelope<Role extends TopLevelRole>(
  bytes: Uint8Array,
  role: Role,
  name: string = role,
): ParsedFile<Role> {
  const json = parseStrictJson(bytes);
  if (json.kind === 'refused') throw at.noJson(name, json);
  const envelope = at.object(name, json.value, 'the file');
  const signed = at.object(name, envelope['signed'], 'signed');
  // A snapshot with valid signatures must not be accepted as a timestamp.
  if (signed['_type'] !== role) throw at.malformed(name, '_type');
  const expiresAtMs = checkBase(name, signed);
  checks[role](signed, name);
  return {
    role,
    name,
    bytes,
    signatures: readSignatures(name, envelope['signatures']),
    // The checks above make this cast correct.
    signed: signed as unknown as SignedOf[Role],
    signedBytes: canonicalBytes(signed),
    expiresAtMs,
  };
}

/**
 * Bounds the time of verification, because each signature is verified over the whole file. With the stolen key of one team an
 * attacker could list ten thousand keys for another role. A file of that role with some megabytes would take minutes at each
 * refresh. Real thresholds are far lower.
 */
const maxSignatures = 64;

function readSignatures(name: string, value: JsonValue | undefined): MetadataSignature[] {
  const seen = new Set<string>();
  const signatures = at.array(name, value, 'signatures');
  if (signatures.length > maxSignatures) throw at.malformed(name, 'signatures');
  return signatures.map((item) => {
    const signature = at.object(name, item, 'signatures[]');
    const keyid = at.string(name, signature['keyid'], 'signatures[].keyid');
    // 4.2.1: the key id is unique in the file. Otherwise a simple count would take one signer for two.
    if (seen.has(keyid)) {
      const facts = { role: name, keyid: keyid.slice(0, 64) };
      throw new WritError('SIGNATURE_DUPLICATE', `${name}: key ${facts.keyid} signs twice`, { facts });
    }
    seen.add(keyid);
    return { keyid, sig: at.string(name, signature['sig'], 'signatures[].sig') };
  });
}

/** @returns the expiry in epoch milliseconds */
function checkBase(name: string, signed: JsonObject): number {
  if (!/^1\.\d{1,4}(\.\d{1,4})?$/.test(at.string(name, signed['spec_version'], 'spec_version'))) {
    throw at.malformed(name, 'spec_version');
  }
  at.count(name, signed['version'], 'version');
  const expiresAtMs = parseIsoTime(signed['expires']);
  // An invalid expiry must not mean "never expires".
  if (expiresAtMs === undefined) throw at.malformed(name, 'expires');
  return expiresAtMs;
}

const checks = { root: checkRoot, timestamp: checkTimestamp, snapshot: checkSnapshot, targets: checkTargets };

function checkRoot(signed: JsonObject): void {
  at.optionalBoolean('root', signed['consistent_snapshot'], 'consistent_snapshot');
  for (const [id, value] of Object.entries(at.object('root', signed['keys'], 'keys'))) {
    at.checkKey('root', value, `keys.${id.slice(0, 12)}`);
  }
  const roles = at.object('root', signed['roles'], 'roles');
  for (const name of topLevelRoles) at.checkRoleKeys('root', roles[name], `roles.${name}`);
}

function checkTimestamp(signed: JsonObject): void {
  const meta = at.object('timestamp', signed['meta'], 'meta');
  if (Object.keys(meta).join() !== 'snapshot.json') throw at.malformed('timestamp', 'meta');
  checkMetaFile('timestamp', meta['snapshot.json'], 'meta.snapshot.json');
  if (signed['writ'] === undefined) return;
  const signedAtMs = parseIsoTime(at.object('timestamp', signed['writ'], 'writ')['signedAt']);
  // A time after the expiry is rejected: as a clock floor it would make this timestamp, which is expired from the start, freeze the
  // host.
  if (signedAtMs === undefined || signedAtMs > (parseIsoTime(signed['expires']) ?? 0)) {
    throw at.malformed('timestamp', 'writ.signedAt');
  }
}

function checkSnapshot(signed: JsonObject): void {
  const meta = at.object('snapshot', signed['meta'], 'meta');
  for (const [name, value] of Object.entries(meta)) checkMetaFile('snapshot', value, `meta.${name}`);
  // A snapshot must list the top-level targets (specification 4.4).
  if (meta['targets.json'] === undefined) throw at.malformed('snapshot', 'meta.targets.json');
}

function checkMetaFile(role: TopLevelRole, value: JsonValue | undefined, where: string): void {
  const file = at.object(role, value, where);
  at.count(role, file['version'], `${where}.version`);
  if (file['length'] !== undefined) at.count(role, file['length'], `${where}.length`);
  if (file['hashes'] !== undefined) checkHashes(role, file['hashes'], `${where}.hashes`);
}

function checkTargets(signed: JsonObject, name: string): void {
  for (const [path, value] of Object.entries(at.object(name, signed['targets'], 'targets'))) {
    const file = at.object(name, value, path);
    const length = file['length'];
    if (typeof length !== 'number' || length < 0) throw at.malformed(name, `${path}: length`);
    checkHashes(name, file['hashes'], `${path}: hashes`);
  }
  if (signed['delegations'] !== undefined) checkDelegations(name, signed['delegations']);
}

function checkHashes(name: string, value: JsonValue | undefined, where: string): void {
  const hashes = at.object(name, value, where);
  for (const hex of Object.values(hashes)) at.string(name, hex, where);
  // Without a digest, each content would be accepted.
  if (Object.keys(hashes).length === 0) throw at.malformed(name, where);
}

/**
 * @param name of a file in the snapshot, as `dns-team.json`
 * @returns its role, as `dns-team`
 */
export function listedRole(name: string): string {
  return name.replace(/\.json$/, '');
}
