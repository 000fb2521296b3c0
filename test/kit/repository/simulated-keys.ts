// Keys of the simulated repository with their ids in metadata, and signatures over the canonical form. key-pairs.ts makes the
// keys.
import type { KeyObject } from 'node:crypto';
import { canonicalBytes } from '../../../src/core/text/canonical-json.js';
import { keyId } from '../../../src/core/tuf/signature-schemes.js';
import type { MetadataKey, MetadataSignature } from '../../../src/core/tuf/tuf-metadata.js';
import { type KeyType, keyKinds, makeKeyPair, publicText, signatureOf } from './key-pairs.js';

export interface SimulatedKey {
  readonly id: string;
  readonly key: MetadataKey;
  readonly secret: KeyObject;
}

/** @returns a new key */
export function makeKey(type: KeyType = 'ed25519'): SimulatedKey {
  const { publicKey, privateKey } = makeKeyPair(type);
  const key = { ...keyKinds[type], keyval: { public: publicText(type, publicKey) } };
  return { id: keyId(key), key, secret: privateKey };
}

/** @returns a new key of the same type */
export function makeSuccessor(key: SimulatedKey): SimulatedKey {
  return makeKey(typeOf(key));
}

/** @returns keys that differ from each other */
export function makeKeys(count: number, type: KeyType = 'ed25519'): SimulatedKey[] {
  return Array.from({ length: count }, () => makeKey(type));
}

/** @returns one signature of each key over the canonical form of `signed` */
export function signWith(keys: readonly SimulatedKey[], signed: unknown): MetadataSignature[] {
  const bytes = canonicalBytes(signed);
  return keys.map((key) => ({ keyid: key.id, sig: signatureOf(typeOf(key), key.secret, bytes) }));
}

/** The id of the key itself, independent of the metadata. */
function typeOf({ secret }: SimulatedKey): KeyType {
  switch (secret.asymmetricKeyType) {
    case 'ec':
      return 'ecdsa';
    case 'rsa':
      return 'rsa';
    default:
      return 'ed25519';
  }
}
