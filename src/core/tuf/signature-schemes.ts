// Key ids and signatures of TUF metadata: Ed25519, ECDSA P-256 and RSA-PSS, verified by node:crypto.
// Owns what counts as one valid signer. Never signs, and never sees a secret key.
import { createHash, createPublicKey, type KeyObject, constants as rsa, verify } from 'node:crypto';
import { canonicalBytes } from '../text/canonical-json.js';
import type { MetadataKey, MetadataSignature, RoleKeys } from './tuf-metadata.js';
import { isWeakEd25519, isWeakRsaExponent } from './weak-keys.js';

/** @returns the TUF key id: 64 hex digits, the SHA-256 of the key's canonical JSON (specification 4.2). */
export function keyId(key: MetadataKey): string {
  return createHash('sha256').update(canonicalBytes(key)).digest('hex');
}

/**
 * @param bytes canonical bytes of `signed`
 * @param sigHex the signature as the metadata writes it
 * @returns false also for a key or scheme that is not known; never throws
 */
export function verifySignature(key: MetadataKey, bytes: Uint8Array, sigHex: string): boolean {
  const publicKey = loadPublicKey(key);
  return publicKey !== undefined && verifyWith(publicKey, key.scheme, bytes, sigHex);
}

/** What countValidSigners reads: the keys and the role of the delegator, and the file to judge. */
export interface SignerCount {
  readonly keys: Readonly<Record<string, MetadataKey>>;
  readonly role: RoleKeys;
  readonly signatures: readonly MetadataSignature[];
  /** Canonical bytes of `signed`. */
  readonly signedBytes: Uint8Array;
}

/**
 * Counts distinct public keys with a valid signature; unknown, empty and invalid signatures are not fatal.
 * A key id that signs twice was refused with the file's shape (parseEnvelope).
 * @returns how many signers of the role really signed
 */
export function countValidSigners(count: SignerCount): number {
  const listed = new Set(count.role.keyids);
  const signers = new Set<string>();
  for (const { keyid, sig } of count.signatures) {
    const signer = listed.has(keyid) ? validSigner(count, keyid, sig) : undefined;
    if (signer !== undefined) signers.add(signer);
  }
  return signers.size;
}

/** @returns the identity of the public key itself: one key under two key ids is still one signer. */
function validSigner(count: SignerCount, id: string, sig: string): string | undefined {
  const key = Object.hasOwn(count.keys, id) ? count.keys[id] : undefined;
  if (key === undefined || !isIdOf(id, key)) return undefined;
  const publicKey = loadPublicKey(key);
  if (publicKey === undefined || !verifyWith(publicKey, key.scheme, count.signedBytes, sig)) return undefined;
  return identityOf(publicKey);
}

/**
 * @returns the same text for the same public key under whatever key id; undefined for a key whose signatures
 *   would never count here (unknown type or scheme, another curve, a short modulus, a weak key)
 */
export function publicKeyIdentity(key: MetadataKey): string | undefined {
  const publicKey = loadPublicKey(key);
  if (publicKey === undefined || verifierOf(publicKey, key.scheme) === undefined) return undefined;
  return identityOf(publicKey);
}

/** By its numbers: the DER of one point on a curve differs with the form, compressed or not, it came in. */
function identityOf(publicKey: KeyObject): string {
  return JSON.stringify(publicKey.export({ format: 'jwk' }));
}

/**
 * A key id that is not the digest of its key could name two keys in two files (specification 4.2 MUST).
 * Older tools digested the three defined members only and added others later: both bind the id to the key.
 */
function isIdOf(id: string, key: MetadataKey): boolean {
  if (keyId(key) === id) return true;
  const { keytype, scheme, keyval } = key;
  return keyId({ keytype, scheme, keyval: { public: keyval.public } }) === id;
}

const maxPublicKeyCharacters = 8192;

function loadPublicKey(key: MetadataKey): KeyObject | undefined {
  const text = key.keyval.public;
  if (text.length > maxPublicKeyCharacters) return undefined;
  try {
    return key.keytype === 'ed25519' ? loadEd25519(text) : loadPem(key, text);
  } catch {
    // OpenSSL's word on a key that is none: such a key never counts.
    return undefined;
  }
}

function loadEd25519(hex: string): KeyObject | undefined {
  if (!/^[0-9a-f]{64}$/i.test(hex)) return undefined;
  const bytes = Buffer.from(hex, 'hex');
  if (isWeakEd25519(bytes)) return undefined;
  // Not as DER, of which the decoders of OpenSSL make more work than of the signature itself.
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') };
  return createPublicKey({ key: jwk, format: 'jwk' });
}

function loadPem(key: MetadataKey, pem: string): KeyObject | undefined {
  // createPublicKey would also take a certificate, or a private key.
  if (!pem.trimStart().startsWith('-----BEGIN PUBLIC KEY-----')) return undefined;
  const publicKey = createPublicKey(pem);
  const details = publicKey.asymmetricKeyDetails ?? {};
  const isP256 = publicKey.asymmetricKeyType === 'ec' && details.namedCurve === 'prime256v1';
  const isStrong = (details.modulusLength ?? 0) >= 2048 && !isWeakRsaExponent(details.publicExponent ?? 0n);
  const isRsa = publicKey.asymmetricKeyType === 'rsa' && isStrong;
  if (key.keytype === 'rsa') return isRsa ? publicKey : undefined;
  const isEcdsa = key.keytype === 'ecdsa' || key.keytype === 'ecdsa-sha2-nistp256';
  return isEcdsa && isP256 ? publicKey : undefined;
}

function verifyWith(publicKey: KeyObject, scheme: string, bytes: Uint8Array, sigHex: string): boolean {
  if (sigHex === '' || sigHex.length % 2 !== 0 || !/^[0-9a-f]+$/i.test(sigHex)) return false;
  const signature = Buffer.from(sigHex, 'hex');
  return verifierOf(publicKey, scheme)?.(publicKey, bytes, signature) ?? false;
}

function verifierOf(publicKey: KeyObject, scheme: string): Verifier | undefined {
  const name = `${publicKey.asymmetricKeyType} ${scheme}`;
  return Object.hasOwn(verifiers, name) ? verifiers[name] : undefined;
}

type Verifier = (key: KeyObject, bytes: Uint8Array, signature: Buffer) => boolean;

/** By the type of the key and the scheme: a scheme never picks the type of key that it is used with. */
const verifiers: Readonly<Record<string, Verifier>> = {
  'ed25519 ed25519': (key, bytes, signature) =>
    isCanonicalEd25519(signature) && verify(null, bytes, key, signature),
  'ec ecdsa-sha2-nistp256': (key, bytes, signature) => verify('sha256', bytes, key, signature),
  'rsa rsassa-pss-sha256': (key, bytes, signature) => {
    const options = { key, padding: rsa.RSA_PKCS1_PSS_PADDING, saltLength: rsa.RSA_PSS_SALTLEN_AUTO };
    return verify('sha256', bytes, options, signature);
  },
};

/** The order of the group of Ed25519 (RFC 8032 section 5.1). */
const groupOrder = (1n << 252n) + 27742317777372353535851937790883648493n;

/** S + L verifies as well where nobody looks: a second signature made without the key (RFC 8032 5.1.7). */
function isCanonicalEd25519(signature: Buffer): boolean {
  if (signature.length !== 64) return false;
  const s = Buffer.from(signature.subarray(32)).reverse().toString('hex');
  return BigInt(`0x${s}`) < groupOrder;
}
