// The parts of simulated metadata: envelopes, times, digests, delegations. Plain values without checks, which a test may change.
import { createHash } from 'node:crypto';
import type { MetadataSignature } from '../../../src/core/tuf/tuf-metadata.js';
import type { SimulatedKey } from './simulated-keys.js';

/** A signed part as plain values, so that a test can set any member. */
// biome-ignore lint/suspicious/noExplicitAny: tests write what no type would let them
export type Loose = any;

export const dayMs = 86_400_000;

/** @returns the bytes of a metadata file, in a form that is not canonical */
export function encodeEnvelope(signatures: readonly MetadataSignature[], signed: unknown): Buffer {
  // The canonical form is no JSON here, because it does not escape the line ends of PEM keys.
  return Buffer.from(JSON.stringify({ signatures, signed }));
}

/**
 * @param ms epoch milliseconds
 * @returns the time in the form of metadata, without a fraction of a second
 */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

/** @returns the common members of a signed part in version 1 */
export function newSigned(type: string, expiresAtMs: number): Loose {
  return { _type: type, spec_version: '1.0.34', version: 1, expires: isoTime(expiresAtMs) };
}

/** @param algorithms of node:crypto; an unknown name gets a digest that no client can check */
export function digestsOf(bytes: Uint8Array, algorithms: readonly string[]): Record<string, string> {
  return Object.fromEntries(algorithms.map((name) => [name, digestOf(bytes, name)]));
}

function digestOf(bytes: Uint8Array, algorithm: string): string {
  const known = ['sha256', 'sha512', 'md5'].includes(algorithm);
  return known ? createHash(algorithm).update(bytes).digest('hex') : '00'.repeat(32);
}

/** The entry of a role in its delegator; without paths and prefixes it covers all names of one and two parts. */
export interface Delegation {
  readonly name: string;
  readonly paths?: readonly string[];
  readonly path_hash_prefixes?: readonly string[];
  /** Undefined members are left out of the metadata. */
  readonly terminating?: boolean;
  /** The keys in this delegator; the keys of the role, or one new key, by default. */
  readonly keys?: readonly SimulatedKey[];
  readonly threshold?: number;
}

/** Appends a delegation to the signed part of a targets role. */
export function appendDelegation(
  signed: Loose,
  { keys = [], threshold = 1, ...rest }: Delegation & { readonly keys: readonly SimulatedKey[] },
): void {
  signed.delegations ??= { keys: {}, roles: [] };
  for (const { id, key } of keys) signed.delegations.keys[id] = key;
  const entry = { ...rest, keyids: keys.map(({ id }) => id), threshold };
  signed.delegations.roles.push(
    rest.paths === undefined && rest.path_hash_prefixes === undefined
      ? { ...entry, paths: ['*', '*/*'] }
      : entry,
  );
}
