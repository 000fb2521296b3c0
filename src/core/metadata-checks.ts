// The single checks that the rules of trust are made of: freshness, threshold, version, digest. Pure.
// Each refuses with the code and the facts of the attack it stops; their order is trusted-set's.
import { createHash } from 'node:crypto';
import { WritError } from './errors.js';
import { countValidSigners } from './signature-schemes.js';
import type { MetaFile, ParsedFile, RootSigned, TopLevelRole } from './tuf-metadata.js';

/** @throws WritError METADATA_EXPIRED, at the instant of `expires` already */
export function requireFresh(file: ParsedFile<TopLevelRole>, atMs: number): void {
  // 5.x "expires is at or before the fixed start time": equal is expired.
  if (file.expiresAtMs > atMs) return;
  const { expires, version } = file.signed;
  throw new WritError('METADATA_EXPIRED', `${file.role} version ${version} expired at ${expires}`, {
    facts: {
      role: file.role,
      version,
      expires,
      expiredForMs: atMs - file.expiresAtMs,
      judgedAt: new Date(atMs).toISOString(),
    },
  });
}

/** @throws WritError SIGNATURE_THRESHOLD when too few keys of the role signed */
export function requireThreshold(
  file: ParsedFile<TopLevelRole>,
  delegator: RootSigned,
  role: TopLevelRole,
): void {
  const { threshold } = delegator.roles[role];
  const actual = validSigners(file, delegator, role);
  // Arbitrary installation: fewer signers than the delegator asks for are nobody.
  if (actual >= threshold) return;
  throw new WritError(
    'SIGNATURE_THRESHOLD',
    `${role}: ${actual} valid signatures, root version ${delegator.version} asks for ${threshold}`,
    { facts: { role, expected: threshold, actual, rootVersion: delegator.version } },
  );
}

function validSigners(file: ParsedFile<TopLevelRole>, delegator: RootSigned, role: TopLevelRole): number {
  const { signatures, signedBytes } = file;
  return countValidSigners({ keys: delegator.keys, role: delegator.roles[role], signatures, signedBytes });
}

/** As requireThreshold for the role itself, as a question. */
export function isVouched(file: ParsedFile<TopLevelRole>, root: ParsedFile<'root'>): boolean {
  return validSigners(file, root.signed, file.role) >= root.signed.roles[file.role].threshold;
}

/** True if the file is exactly the one that the entry names. */
export function isNamedBy(meta: MetaFile, file: ParsedFile<'snapshot' | 'targets'>): boolean {
  return meta.version === file.signed.version && digestMismatch(meta, file.bytes) === undefined;
}

/** @throws WritError METADATA_MIX */
export function requireVersion(role: TopLevelRole, meta: MetaFile, actual: number): void {
  // Mix-and-match: parts of two publishes, each well signed, would make a policy that never existed.
  if (actual !== meta.version)
    throw mix(role, `version ${actual}, ${meta.version} is named`, meta.version, actual);
}

/** Length, and every digest known here. @throws WritError METADATA_MIX */
export function requireDigests(role: TopLevelRole, meta: MetaFile, bytes: Uint8Array): void {
  const mismatch = digestMismatch(meta, bytes);
  if (mismatch === undefined) return;
  throw mix(role, `${mismatch.name} differs from the one that is named`, mismatch.expected, mismatch.actual);
}

interface Mismatch {
  readonly name: string;
  readonly expected: string | number;
  readonly actual: string | number;
}

const knownAlgorithms: readonly string[] = ['sha256', 'sha512'];

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
  return new WritError('METADATA_ROLLBACK', `${role}: version ${actual}, at least ${expected} was seen`, {
    facts: { role, expected, actual },
  });
}

export function mix(
  role: string,
  message: string,
  expected: string | number,
  actual: string | number,
): WritError {
  return new WritError('METADATA_MIX', `${role}: ${message}`, { facts: { role, expected, actual } });
}
