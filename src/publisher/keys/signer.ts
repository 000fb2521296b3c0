// Signs metadata with tweetnacl (or an external command), and verifies each signature with node:crypto before it is used.
// Two independent implementations must agree, so that a faulty or subverted one cannot sign.
import nacl from 'tweetnacl';
import { WritError } from '../../core/errors.js';
import { canonicalBytes, canonicalJson } from '../../core/text/canonical-json.js';
import { keyId, verifySignature } from '../../core/tuf/signature-schemes.js';
import type { Envelope, MetadataKey, MetadataSignature } from '../../core/tuf/tuf-metadata.js';
import { isPublicKeyOf, publicKeyOf } from './key-file.js';

/** A signer: an unlocked key, or a command of another program. */
export interface Signer {
  /** The keys that it may sign with: its own key, or all keys of the role for a command, which does not name its key. */
  readonly keys: readonly MetadataKey[];
  /** @throws WritError SIGNER_FAILED, SIGNER_WRONG of an external command */
  sign(bytes: Uint8Array): Promise<MetadataSignature>;
}

/** An unlocked key. `signNow` signs synchronously, because no device or person is involved. */
export type KeySigner = ReturnType<typeof createSigner>;

/**
 * Creates a signer from an Ed25519 secret.
 * @param seed the secret, 32 bytes; the signer does not expose it
 * @param expectedPublicKey hex, to save its derivation; '' or the key of another seed is ignored
 * @returns the key in the form of the metadata, its id (hex), and `keys` with only this key. `signNow(bytes)` returns the
 *   signature (hex) with the key id; `sign` resolves to the same. The same bytes always have the same signature
 */
export function createSigner(seed: Uint8Array, expectedPublicKey = '') {
  const publicKey = isPublicKeyOf(expectedPublicKey, seed) ? expectedPublicKey : publicKeyOf(seed);
  // The secret key in the form of tweetnacl. With the public key of another seed, two signatures would reveal the secret.
  const secretKey = Uint8Array.of(...seed, ...Buffer.from(publicKey, 'hex'));
  const key = metadataKey(publicKey);
  const id = keyId(key);
  const signNow = (bytes: Uint8Array): MetadataSignature => {
    const sig = Buffer.from(nacl.sign.detached(Uint8Array.from(bytes), secretKey)).toString('hex');
    return { keyid: id, sig };
  };
  return { key, keyId: id, keys: [key], signNow, sign: async (bytes: Uint8Array) => signNow(bytes) };
}

/** @param publicKey hex. @returns the key in the form of the metadata */
export function metadataKey(publicKey: string): MetadataKey {
  return { keytype: 'ed25519', scheme: 'ed25519', keyval: { public: publicKey } };
}

/**
 * @param signed the signed part of a metadata file
 * @returns the file with one signature of each signer, in their order
 * @throws WritError SIGNATURE_DISAGREEMENT, KEYS_MISSING when two signers have the same key, and errors of the signers
 */
export async function signMetadata(signed: object, signers: readonly Signer[]): Promise<Buffer> {
  const bytes = canonicalBytes(signed);
  const signatures: MetadataSignature[] = [];
  // One after the other, because each may ask a person for a touch or a PIN.
  for (const signer of signers) signatures.push(checkedSignature(signer, bytes, await signer.sign(bytes)));
  requireDistinct(signatures);
  return encodeMetadata({ signatures, signed });
}

/** Like signMetadata, with unlocked keys only. @throws WritError SIGNATURE_DISAGREEMENT */
export function signMetadataNow(signed: object, signers: readonly KeySigner[]): Buffer {
  const bytes = canonicalBytes(signed);
  const signatures = signers.map((signer) => checkedSignature(signer, bytes, signer.signNow(bytes)));
  return encodeMetadata({ signatures, signed });
}

/**
 * @returns the bytes of the file: canonical order with JSON escapes. Canonical JSON leaves the line breaks of a PEM key
 *   unescaped, and JSON parsers reject those
 */
export function encodeMetadata(file: Envelope<object>): Buffer {
  const text = canonicalJson(file);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to be escaped
  return Buffer.from(text.replace(/[\u0000-\u001f]/g, escapeControl), 'utf8');
}

function escapeControl(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** @returns the signature if the other implementation verifies it. @throws WritError SIGNATURE_DISAGREEMENT */
export function checkedSignature(
  signer: Signer,
  bytes: Uint8Array,
  signature: MetadataSignature,
): MetadataSignature {
  const key = signer.keys.find((one) => keyId(one) === signature.keyid);
  if (key !== undefined && verifySignature(key, bytes, signature.sig)) return signature;
  const { keyid } = signature;
  throw new WritError('SIGNATURE_DISAGREEMENT', `a signature of key ${keyid} does not verify`, {
    facts: { keyId: keyid },
  });
}

/** Two signatures of one key count once, and all readers refuse a file that contains both. */
function requireDistinct(signatures: readonly MetadataSignature[]): void {
  const ids = signatures.map(({ keyid }) => keyid);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice === undefined) return;
  throw new WritError('KEYS_MISSING', `two signers have the same key, ${twice}`, {
    facts: { keyId: twice, expected: ids.length, actual: new Set(ids).size },
    hint: 'Give a signer for each key that is needed.',
  });
}
