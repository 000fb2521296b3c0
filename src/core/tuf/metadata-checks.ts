// The single checks of metadata: freshness, threshold, version, digest. Each throws an error with the facts of the attack that it
// detects. trusted-set.ts applies them in the order of the specification. Pure.
import { createHash } from 'node:crypto';
import { WritError } from '../errors.js';
import { given } from '../given.js';
import { countValidSigners } from './signature-schemes.js';
import {
  type DelegatedRole,
  listedRole,
  type MetadataKey,
  type MetaFile,
  type ParsedFile,
  type RoleKeys,
  type TopLevelRole,
} from './tuf-metadata.js';

/** @throws WritError METADATA_EXPIRED if `expires` is at or before `atMs` */
export function requireFresh(file: ParsedFile<TopLevelRole>, atMs: number): void {
  // The specification, section 5: metadata has expired when `expires` is at or before the fixed start time.
  if (file.expiresAtMs > atMs) return;
  const { expires, version } = file.signed;
  throw new WritError('METADATA_EXPIRED', `${file.name} version ${version} expired at ${expires}`, {
    facts: {
      role: file.name,
      version,
      expires,
      expiredForMs: atMs - file.expiresAtMs,
      judgedAt: new Date(atMs).toISOString(),
    },
    hint: renewalOf(file.name),
  });
}

/** @returns which person or program must re-sign the role, as a sentence. Most readers of this error have no key and must ask. */
export function renewalOf(role: string): string {
  if (role === 'root') return 'The holders of the root keys sign a new one (`writ root rotate`).';
  if (role === 'timestamp' || role === 'snapshot') return 'The server must re-sign it (`writ refresh`).';
  return `The holder of its key must re-sign it (\`writ sign --role ${role}\`).`;
}

/** The signing authority of a file: the keys and the threshold, and the name and version of the file that lists them. */
export interface Authority {
  readonly name: string;
  readonly version: number;
  readonly keys: Readonly<Record<string, MetadataKey>>;
  readonly role: RoleKeys;
}

/** @returns the authority that the root gives to a top-level role */
export function rootAuthority(root: Pick<ParsedFile<'root'>, 'signed'>, role: TopLevelRole): Authority {
  const { keys, roles, version } = root.signed;
  return { name: 'root', version, keys, role: roles[role] };
}

/**
 * @returns the authority that one targets file gives to a role. Each delegator has its own keys and threshold for a role, so that
 *   the authority of another delegator does not count (specification 5.6.7).
 */
export function delegationAuthority(
  delegator: Pick<ParsedFile<'targets'>, 'name' | 'signed'>,
  role: DelegatedRole,
): Authority {
  const { version, delegations } = delegator.signed;
  return { name: delegator.name, version, keys: delegations?.keys ?? {}, role };
}

type SignedFile = Pick<ParsedFile<TopLevelRole>, 'name' | 'signatures' | 'signedBytes'>;

/**
 * @throws WritError SIGNATURE_WRONG_KEY when there are signatures, but none by a key of the role;
 *   SIGNATURE_THRESHOLD when too few keys of the role signed
 */
export function requireThreshold(file: SignedFile, authority: Authority): void {
  const { threshold, keyids } = authority.role;
  const actual = validSigners(file, authority);
  // Arbitrary installation attack: a file with fewer signers than the threshold is not authentic.
  if (actual >= threshold) return;
  const { name, version } = authority;
  const rootVersion = name === 'root' ? { rootVersion: version } : {};
  const facts = {
    role: file.name,
    expected: threshold,
    actual,
    by: name,
    byVersion: version,
    ...rootVersion,
  };
  if (file.signatures.length > 0 && !file.signatures.some(({ keyid }) => keyids.includes(keyid))) {
    const text = `${file.name}: signed by none of the keys that ${name} version ${version} lists`;
    // The hint in the catalogue is for a wrong root, which cannot be the cause for a delegated role alone.
    const hint = `${file.name} has not signed with its current keys yet, or another key signed it. Inform the publisher: \`writ sign --role ${file.name}\` signs it again.`;
    throw new WritError('SIGNATURE_WRONG_KEY', text, { facts, ...(name === 'root' ? {} : { hint }) });
  }
  const text = `${file.name}: ${actual} valid signatures, ${name} version ${version} asks for ${threshold}`;
  throw new WritError('SIGNATURE_THRESHOLD', text, { facts });
}

function validSigners({ signatures, signedBytes }: SignedFile, { keys, role }: Authority): number {
  return countValidSigners({ keys, role, signatures, signedBytes });
}

/** @returns whether requireThreshold accepts the file */
export function isVouched(file: SignedFile, authority: Authority): boolean {
  return validSigners(file, authority) >= authority.role.threshold;
}

/** Cache of isVouchedByRoot for each file: the last root and the result. Parsed files are immutable. */
const rootVerdicts = new WeakMap<object, { readonly root: object; readonly vouched: boolean }>();

/** As isVouched, with the authority of a root. The result is cached, because each poll repeats it for the same files. */
export function isVouchedByRoot(
  file: SignedFile & Pick<ParsedFile<TopLevelRole>, 'role'>,
  root: Pick<ParsedFile<'root'>, 'signed'>,
): boolean {
  const known = rootVerdicts.get(file);
  if (known?.root === root) return known.vouched;
  const vouched = isVouched(file, rootAuthority(root, file.role));
  rootVerdicts.set(file, { root, vouched });
  return vouched;
}

/** @returns true if the file has the version, length and digests of the entry */
export function isNamedBy(meta: MetaFile, file: ParsedFile<'snapshot' | 'targets'>): boolean {
  return meta.version === file.signed.version && digestMismatch(meta, file.bytes) === undefined;
}

/**
 * @param meta the entry of the file in the metadata that lists it
 * @throws WritError METADATA_MIX when the file has another version
 */
export function requireVersion(role: string, meta: MetaFile, actual: number): void {
  // Mix-and-match attack: parts of two publishes, each with valid signatures, would combine to a policy that was never published.
  if (actual !== meta.version)
    throw mix(role, `version ${actual}, ${meta.version} is named`, meta.version, actual);
}

/**
 * Compares the length, and each digest with a known algorithm.
 * @throws WritError METADATA_MIX
 */
export function requireDigests(role: string, meta: MetaFile, bytes: Uint8Array): void {
  const mismatch = digestMismatch(meta, bytes);
  if (mismatch === undefined) return;
  throw mix(role, `${mismatch.name} differs from the one that is named`, mismatch.expected, mismatch.actual);
}

/** Digest algorithms that this version can compute. */
export const knownAlgorithms: readonly string[] = ['sha256', 'sha512'];

type Fact = string | number;
type Mismatch = { readonly name: string; readonly expected: Fact; readonly actual: Fact };

function digestMismatch(meta: MetaFile, bytes: Uint8Array): Mismatch | undefined {
  if (meta.length !== undefined && meta.length !== bytes.length) {
    return { name: 'length', expected: meta.length, actual: bytes.length };
  }
  if (meta.hashes === undefined) return undefined;
  const known = knownAlgorithms.filter((name) => Object.hasOwn(meta.hashes ?? {}, name));
  // Digests of unknown algorithms only cannot be verified, so that the file is rejected.
  if (known.length === 0)
    return { name: 'digest', expected: knownAlgorithms.join(' or '), actual: 'unknown' };
  for (const name of known) {
    const expected = meta.hashes[name] ?? '';
    const actual = createHash(name).update(bytes).digest('hex');
    if (actual !== expected) return { name, expected, actual };
  }
  return undefined;
}

/**
 * @param expected the lowest acceptable version; `actual` is lower
 * @returns the error METADATA_ROLLBACK with the facts `role`, `expected` and `actual`. It is not thrown here. Example of its
 *   message: `snapshot: version 3, at least 4 was seen`
 */
export function rollback(role: string, expected: number, actual: number): WritError {
  const text = `${role}: version ${actual}, at least ${expected} was seen`;
  return new WritError('METADATA_ROLLBACK', text, { facts: { role, expected, actual } });
}

/**
 * @param role of the file that does not match
 * @param expected value in the file that lists it; `actual` is the value found
 * @param hint replaces the hint in the catalogue; undefined keeps it
 * @returns the error METADATA_MIX with the message `<role>: <message>` and the facts `role`, `expected`, `actual`. It is not
 *   thrown here.
 */
export function mix(role: string, message: string, expected: Fact, actual: Fact, hint?: string): WritError {
  const facts = { role, expected, actual };
  return new WritError('METADATA_MIX', `${role}: ${message}`, { facts, ...given({ hint }) });
}

/**
 * 5.5.5, rollback attack: a targets role must not return to an older version, nor disappear, because it could reappear with an older
 * one.
 * @throws WritError METADATA_ROLLBACK
 */
export function refuseShrunkSnapshot(
  before: Readonly<Record<string, MetaFile>>,
  after: Readonly<Record<string, MetaFile>>,
): void {
  for (const [name, { version }] of Object.entries(before)) {
    const error = findOlderInSnapshot(name, version, after);
    if (error !== undefined) throw error;
  }
}

/**
 * @param name of a file, as `team.json`
 * @returns METADATA_ROLLBACK if the snapshot lists an older version of the file or does not list it
 */
export function findOlderInSnapshot(
  name: string,
  version: number,
  meta: Readonly<Record<string, MetaFile>>,
): WritError | undefined {
  const actual = Object.hasOwn(meta, name) ? (meta[name]?.version ?? 0) : 0;
  return actual < version ? rollback(listedRole(name), version, actual) : undefined;
}
