// Creates, encodes and decodes the Ed25519 key with which a host signs its own reports. An attacker with this key can forge
// reports of this host only. Pure functions; host-state protects the encoded key on disk.
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';

export interface FleetKey {
  /** The raw key in base64. */
  readonly publicKey: string;
  /** SHA-256 of the raw key in hex, used as its name until a fleet server assigns one. */
  readonly fingerprint: string;
  readonly sign: (bytes: Uint8Array) => Buffer;
}

/** @returns a new secret, as base64 of PKCS 8 */
export function newSecret(): string {
  const { privateKey } = generateKeyPairSync('ed25519');
  return privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
}

/** Decodes a secret that newSecret returned. @throws an error of node:crypto for any other text */
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
