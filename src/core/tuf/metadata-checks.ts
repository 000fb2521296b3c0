// The single checks that the rules of trust are made of: freshness, threshold, version, digest. Pure.
// Each refuses with the code and the facts of the attack it stops; their order is trusted-set's.
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

/** @throws WritError METADATA_EXPIRED, at the instant of `expires` already */
export function requireFresh(file: ParsedFile<TopLevelRole>, atMs: number): void {
  // 5.x "expires is at or before the fixed start time": equal is expired.
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

/** @returns who has to do what, as a sentence; three in four readers of this error have no key that helps. */
export function renewalOf(role: string): string {
  if (role === 'root') return 'The holders of the root keys sign a new one (`writ root rotate`).';
  if (role === 'timestamp' || role === 'snapshot') return 'The server must re-sign it (`writ refresh`).';
  return `The holder of its key must re-sign it (\`writ sign --role ${role}\`).`;
}

/** Whoever vouches for a file: the keys and the threshold that it names, and its own name and version. */
export interface Authority {
  readonly name: string;
  readonly version: number;
  readonly keys: Readonly<Record<string, MetadataKey>>;
  readonly role: RoleKeys;
}

/** The root's word about a top-level role. */
export function rootAuthority(root: Pick<ParsedFile<'root'>, 'signed'>, role: TopLevelRole): Authority {
  const { keys, roles, version } = root.signed;
  return { name: 'root', version, keys, role: roles[role] };
}

/**
 * The word of one targets file about a role that it delegates to. Another file's word about the same name
 * counts nothing here (specification 5.6.7: keys and threshold of the delegator on the way).
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
  // Arbitrary installation: fewer signers than the delegator asks for are nobody.
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
    // The hint of the catalogue is about another root, which never affects a delegated role alone.
    const hint = `${file.name} has not signed with its current keys yet, or another key signed it. Inform the publisher: \`writ sign --role ${file.name}\` signs it again.`;
    throw new WritError('SIGNATURE_WRONG_KEY', text, { facts, ...(name === 'root' ? {} : { hint }) });
  }
  const text = `${file.name}: ${actual} valid signatures, ${name} version ${version} asks for ${threshold}`;
  throw new WritError('SIGNATURE_THRESHOLD', text, { facts });
}

function validSigners({ signatures, signedBytes }: SignedFile, { keys, role }: Authority): number {
  return countValidSigners({ keys, role, signatures, signedBytes });
}

/** As requireThreshold, as a question. */
export function isVouched(file: SignedFile, authority: Authority): boolean {
  return validSigners(file, authority) >= authority.role.threshold;
}

/** By file, the root that was asked about it last, and what it said: both are parsed once and never changed. */
const said = new WeakMap<object, { readonly root: object; readonly vouched: boolean }>();

/** As isVouched, for a top-level role in the eyes of a root: each poll asks it of the same files. */
export function isVouchedByRoot(
  file: SignedFile & Pick<ParsedFile<TopLevelRole>, 'role'>,
  root: Pick<ParsedFile<'root'>, 'signed'>,
): boolean {
  const known = said.get(file);
  if (known?.root === root) return known.vouched;
  const vouched = isVouched(file, rootAuthority(root, file.role));
  said.set(file, { root, vouched });
  return vouched;
}

/** True if the file is exactly the one that the entry names. */
export function isNamedBy(meta: MetaFile, file: ParsedFile<'snapshot' | 'targets'>): boolean {
  return meta.version === file.signed.version && digestMismatch(meta, file.bytes) === undefined;
}

/** @throws WritError METADATA_MIX */
export function requireVersion(role: string, meta: MetaFile, actual: number): void {
  // Mix-and-match: parts of two publishes, each well signed, would make a policy that never existed.
  if (actual !== meta.version)
    throw mix(role, `version ${actual}, ${meta.version} is named`, meta.version, actual);
}

/** Length, and every digest known here. @throws WritError METADATA_MIX */
export function requireDigests(role: string, meta: MetaFile, bytes: Uint8Array): void {
  const mismatch = digestMismatch(meta, bytes);
  if (mismatch === undefined) return;
  throw mix(role, `${mismatch.name} differs from the one that is named`, mismatch.expected, mismatch.actual);
}

/** Digests that can be checked here. */
export const knownAlgorithms: readonly string[] = ['sha256', 'sha512'];

type Fact = string | number;
type Mismatch = { readonly name: string; readonly expected: Fact; readonly actual: Fact };

function digestMismatch(meta: MetaFile, bytes: Uint8Array): Mismatch | undefined {
  if (meta.length !== undefined && meta.length !== bytes.length) {
    return { name: 'length', expected: meta.length, actual: bytes.length };
  }
  if (meta.hashes === undefined) return undefined;
  const known = knownAlgorithms.filter((name) => Object.hasOwn(meta.hashes ?? {}, name));
  // Digests that nobody here can check are no proof.
  if (known.length === 0)
    return { name: 'digest', expected: knownAlgorithms.join(' or '), actual: 'unknown' };
  for (const name of known) {
    const expected = meta.hashes[name] ?? '';
    const actual = createHash(name).update(bytes).digest('hex');
    if (actual !== expected) return { name, expected, actual };
  }
  return undefined;
}

/** @param expected the lowest version that would have been accepted */
export function rollback(role: string, expected: number, actual: number): WritError {
  const text = `${role}: version ${actual}, at least ${expected} was seen`;
  return new WritError('METADATA_ROLLBACK', text, { facts: { role, expected, actual } });
}

/**
 * @param role the file that does not fit
 * @param expected what names it. @param hint in place of the hint of the code
 */
export function mix(role: string, message: string, expected: Fact, actual: Fact, hint?: string): WritError {
  const facts = { role, expected, actual };
  return new WritError('METADATA_MIX', `${role}: ${message}`, { facts, ...given({ hint }) });
}

/**
 * 5.5.5, rollback: no targets role may go back to an older version, or vanish and return with one.
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

/** @param name of a file, as `team.json`. @returns METADATA_ROLLBACK where the snapshot lists an older version of it, or none */
export function findOlderInSnapshot(
  name: string,
  version: number,
  meta: Readonly<Record<string, MetaFile>>,
): WritError | undefined {
  const actual = Object.hasOwn(meta, name) ? (meta[name]?.version ?? 0) : 0;
  return actual < version ? rollback(listedRole(name), version, actual) : undefined;
}
