// Signs metadata: made with tweetnacl, checked with node:crypto before it is used. Two independent
// implementations must agree on every signature, so that one faulty (or subverted) one signs nothing.
import nacl from 'tweetnacl';
import { canonicalBytes } from '../core/canonical-json.js';
import { WritError } from '../core/errors.js';
import { keyId, verifySignature } from '../core/signature-schemes.js';
import type { MetadataKey } from '../core/tuf-metadata.js';

/** Somebody who can sign; the way to an external signer command. */
export interface Signer {
  readonly keyId: string;
  readonly key: MetadataKey;
  /** @returns the signature in hex */
  sign(bytes: Uint8Array): string;
}

/** @param seed the secret of an Ed25519 key; it stays inside */
export function createSigner(seed: Uint8Array): Signer {
  const pair = nacl.sign.keyPair.fromSeed(seed);
  const key = metadataKey(Buffer.from(pair.publicKey).toString('hex'));
  return {
    key,
    keyId: keyId(key),
    sign: (bytes) => Buffer.from(nacl.sign.detached(bytes, pair.secretKey)).toString('hex'),
  };
}

/** @param publicKey hex. @returns the key as metadata lists it */
export function metadataKey(publicKey: string): MetadataKey {
  return { keytype: 'ed25519', scheme: 'ed25519', keyval: { public: publicKey } };
}

/**
 * @param signed the part of a metadata file that signatures are over
 * @returns the file: canonical JSON with one signature of each signer
 * @throws WritError SIGNATURE_DISAGREEMENT
 */
export function signMetadata(signed: object, signers: readonly Signer[]): Buffer {
  const bytes = Uint8Array.from(canonicalBytes(signed));
  const signatures = signers.map((signer) => ({ keyid: signer.keyId, sig: checkedSignature(signer, bytes) }));
  return canonicalBytes({ signatures, signed });
}

function checkedSignature(signer: Signer, bytes: Uint8Array): string {
  const sig = signer.sign(bytes);
  if (verifySignature(signer.key, bytes, sig)) return sig;
  throw new WritError('SIGNATURE_DISAGREEMENT', `a signature of key ${signer.keyId} does not verify`, {
    facts: { keyId: signer.keyId },
  });
}
