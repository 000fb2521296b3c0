// The key with which a host signs its own reports (Ed25519): made, written as text, read back. A thief of it lies about this
// host, and about nothing else. Touches no disk; who may read the text is host-state's.
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';

export interface FleetKey {
  /** Raw, base64. */
  readonly publicKey: string;
  /** SHA-256 of the raw key, hex: what it is called before a fleet has given it a name. */
  readonly fingerprint: string;
  readonly sign: (bytes: Uint8Array) => Buffer;
}

/** @returns a new secret, as base64 of PKCS 8 */
export function newSecret(): string {
  const { privateKey } = generateKeyPairSync('ed25519');
  return privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
}

/** @throws an error of node:crypto for what is no such secret */
export function readSecret(secret: string): FleetKey {
  const privateKey = createPrivateKey({ key: Buffer.from(secret, 'base64'), format: 'der', type: 'pkcs8' });
  if (privateKey.asymmetricKeyType !== 'ed25519') throw new TypeError('it is not an Ed25519 key');
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  const raw = Buffer.from(x, 'base64url');
  return {
    publicKey: raw.toString('base64'),
    fingerprint: createHash('sha256').update(raw).digest('hex'),
    sign: (bytes) => sign(null, bytes, privateKey),
  };
}
