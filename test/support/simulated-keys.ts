// Keys of the simulated repository, of every type that metadata may list, made and used by node:crypto. Shares no
// code with the publisher, so that a fault of one is not hidden by the same fault of the other.
import { generateKeyPairSync, type KeyObject, constants as rsa, sign } from 'node:crypto';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { keyId } from '../../src/core/signature-schemes.js';
import type { MetadataKey, MetadataSignature } from '../../src/core/tuf-metadata.js';

export type KeyType = 'ed25519' | 'ecdsa' | 'rsa';

export interface SimulatedKey {
  readonly id: string;
  readonly key: MetadataKey;
  readonly secret: KeyObject;
}

/** RSA takes a tenth of a second: use it where the type is what is tested. */
export function makeKey(type: KeyType = 'ed25519'): SimulatedKey {
  const { publicKey, privateKey } = generate(type);
  const key = { ...kinds[type], keyval: { public: publicText(type, publicKey) } };
  return { id: keyId(key), key, secret: privateKey };
}

/** A new key of the same type. */
export function makeSuccessor(key: SimulatedKey): SimulatedKey {
  return makeKey(typeOf(key));
}

export function makeKeys(count: number, type: KeyType = 'ed25519'): SimulatedKey[] {
  return Array.from({ length: count }, () => makeKey(type));
}

/** One signature a key over the canonical form of `signed`. */
export function signWith(keys: readonly SimulatedKey[], signed: unknown): MetadataSignature[] {
  const bytes = canonicalBytes(signed);
  return keys.map((key) => ({ keyid: key.id, sig: signBytes(key, bytes).toString('hex') }));
}

const kinds = {
  ed25519: { keytype: 'ed25519', scheme: 'ed25519' },
  ecdsa: { keytype: 'ecdsa', scheme: 'ecdsa-sha2-nistp256' },
  rsa: { keytype: 'rsa', scheme: 'rsassa-pss-sha256' },
} as const;

function generate(type: KeyType): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  switch (type) {
    case 'ed25519':
      return generateKeyPairSync('ed25519');
    case 'ecdsa':
      return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    case 'rsa':
      return generateKeyPairSync('rsa', { modulusLength: 2048 });
  }
}

function publicText(type: KeyType, publicKey: KeyObject): string {
  if (type !== 'ed25519') return publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex');
}

/** Of the key itself, whatever a test makes the metadata say about it. */
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

function signBytes(key: SimulatedKey, bytes: Buffer): Buffer {
  const { secret } = key;
  switch (typeOf(key)) {
    case 'ed25519':
      return sign(null, bytes, secret);
    case 'ecdsa':
      return sign('sha256', bytes, secret);
    case 'rsa':
      return sign('sha256', bytes, { key: secret, padding: rsa.RSA_PKCS1_PSS_PADDING, saltLength: 32 });
  }
}
