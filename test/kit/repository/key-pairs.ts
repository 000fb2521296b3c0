// Key pairs of every type that metadata may list, made and used by node:crypto alone. Shares no code with the
// publisher, so that a fault of one is not hidden by the same fault of the other.
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

/** What metadata says of a key beside its value. */
export const keyKinds: Readonly<Record<KeyType, { readonly keytype: string; readonly scheme: string }>> = {
  ed25519: { keytype: 'ed25519', scheme: 'ed25519' },
  ecdsa: { keytype: 'ecdsa', scheme: 'ecdsa-sha2-nistp256' },
  rsa: { keytype: 'rsa', scheme: 'rsassa-pss-sha256' },
};

export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

/** A new one; RSA takes a tenth of a second: use it where the type is what is tested. */
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

/** PKCS #8 of an Ed25519 key up to its seed (RFC 8410). */
const ed25519Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');

/** An Ed25519 pair that is the same one in every run. */
export function seededKeyPair(seed: string): KeyPair {
  const der = Buffer.concat([ed25519Prefix, createHash('sha256').update(seed).digest()]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** The public key as metadata writes it: 32 bytes in hex for Ed25519, else PEM. */
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
