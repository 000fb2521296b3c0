// Key ids and signatures of TUF metadata: Ed25519, ECDSA P-256 and RSA-PSS, verified by node:crypto. Decides what counts as one
// valid signer. Reads no secret key and signs nothing.
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
 * @param sigHex hex text of the signature from the metadata
 * @returns false also for an unknown key type or scheme; never throws
 */
export function verifySignature(key: MetadataKey, bytes: Uint8Array, sigHex: string): boolean {
  const publicKey = loadPublicKey(key);
  return publicKey !== undefined && verifyWith(publicKey, key.scheme, bytes, sigHex);
}

/** The input of countValidSigners: the keys and the role in the file of the delegator, and the file to verify. */
export interface SignerCount {
  readonly keys: Readonly<Record<string, MetadataKey>>;
  readonly role: RoleKeys;
  readonly signatures: readonly MetadataSignature[];
  /** Canonical bytes of `signed`. */
  readonly signedBytes: Uint8Array;
}

/**
 * Counts the distinct public keys of the role with a valid signature. Unknown keys and empty or invalid signatures are ignored.
 * parseEnvelope has already rejected a file with two signatures of one key id.
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

/** @returns the identity of the public key, because one key with two key ids is one signer */
function validSigner(count: SignerCount, id: string, sig: string): string | undefined {
  const key = Object.hasOwn(count.keys, id) ? count.keys[id] : undefined;
  if (key === undefined || !isIdOf(id, key)) return undefined;
  const publicKey = loadPublicKey(key);
  if (publicKey === undefined || !verifyWith(publicKey, key.scheme, count.signedBytes, sig)) return undefined;
  return identityOf(publicKey);
}

/**
 * @returns one text for each public key, whatever its key id; undefined for a key that is never a valid signer: of unknown type or
 *   scheme, on another curve, with a short modulus, or weak
 */
export function publicKeyIdentity(key: MetadataKey): string | undefined {
  const publicKey = loadPublicKey(key);
  if (publicKey === undefined || verifierOf(publicKey, key.scheme) === undefined) return undefined;
  return identityOf(publicKey);
}

/** Uses the numbers of the key, because the DER of one point differs between its compressed and uncompressed form. */
function identityOf(publicKey: KeyObject): string {
  return JSON.stringify(publicKey.export({ format: 'jwk' }));
}

/**
 * Binds a key id to its key: without it one id could mean two keys in two files (specification 4.2 MUST). Older tools computed the
 * digest over the three defined members only, and added others later. Both digests are accepted.
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
    // OpenSSL cannot decode the key: it never counts as a signer.
    return undefined;
  }
}

function loadEd25519(hex: string): KeyObject | undefined {
  if (!/^[0-9a-f]{64}$/i.test(hex)) return undefined;
  const bytes = Buffer.from(hex, 'hex');
  if (isWeakEd25519(bytes)) return undefined;
  // As JWK, because OpenSSL takes longer to decode the DER than to verify the signature.
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') };
  return createPublicKey({ key: jwk, format: 'jwk' });
}

function loadPem(key: MetadataKey, pem: string): KeyObject | undefined {
  // createPublicKey would also accept a certificate or a private key.
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

/** By type of the key and scheme, so that a scheme is never applied to another type of key. */
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

/** A verifier without this check also accepts S + L, which makes a second valid signature without the key (RFC 8032 5.1.7). */
function isCanonicalEd25519(signature: Buffer): boolean {
  if (signature.length !== 64) return false;
  const s = Buffer.from(signature.subarray(32)).reverse().toString('hex');
  return BigInt(`0x${s}`) < groupOrder;
}
