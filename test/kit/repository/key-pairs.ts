// Key pairs of each type that metadata may list, with node:crypto alone. Shares no code with the publisher, so that a fault
// of one does not hide the same fault of the other.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  constants as rsa,
  sign,
} from 'node:crypto';

export type KeyType = 'ed25519' | 'ecdsa' | 'rsa';

/** Type and scheme of a key in metadata. */
export const keyKinds: Readonly<Record<KeyType, { readonly keytype: string; readonly scheme: string }>> = {
  ed25519: { keytype: 'ed25519', scheme: 'ed25519' },
  ecdsa: { keytype: 'ecdsa', scheme: 'ecdsa-sha2-nistp256' },
  rsa: { keytype: 'rsa', scheme: 'rsassa-pss-sha256' },
};

export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

/** @returns a new key pair. RSA takes 100 ms: use it only for tests of the type. */
export function makeKeyPair(type: KeyType): KeyPair {
  switch (type) {
    case 'ed25519':
      return generateKeyPairSync('ed25519');
    case 'ecdsa':
      return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    case 'rsa':
      return generateKeyPairSync('rsa', { modulusLength: 2048 });
    default:
      return type satisfies never;
  }
}

/** DER prefix before the seed of an Ed25519 key in PKCS #8 (RFC 8410). */
const ed25519Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');

/** @returns the Ed25519 pair of this seed, equal in each run */
export function seededKeyPair(seed: string): KeyPair {
  const der = Buffer.concat([ed25519Prefix, createHash('sha256').update(seed).digest()]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** @returns the public key as metadata writes it: 32 bytes in hex for Ed25519, otherwise PEM */
export function publicText(type: KeyType, publicKey: KeyObject): string {
  if (type !== 'ed25519') return publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex');
}

/** @returns the signature in hex */
export function signatureOf(type: KeyType, privateKey: KeyObject, bytes: Buffer): string {
  switch (type) {
    case 'ed25519':
      return sign(null, bytes, privateKey).toString('hex');
    case 'ecdsa':
      return sign('sha256', bytes, privateKey).toString('hex');
    case 'rsa': {
      const pss = { key: privateKey, padding: rsa.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
      return sign('sha256', bytes, pss).toString('hex');
    }
    default:
      return type satisfies never;
  }
}
