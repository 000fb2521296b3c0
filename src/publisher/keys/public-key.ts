// Public keys in files: Writ's own format with a name, or PEM of another program (Ed25519, ECDSA P-256, RSA). Defines the
// format of .pub files. They arrive by mail: bounded, parsed strictly, and the key id is computed, never read.
import { createPublicKey, type KeyObject } from 'node:crypto';
import { basename } from 'node:path';
import { WritError } from '../../core/errors.js';
import { type JsonValue, parseStrictJson } from '../../core/text/strict-json.js';
import { keyId, publicKeyIdentity } from '../../core/tuf/signature-schemes.js';
import type { MetadataKey } from '../../core/tuf/tuf-metadata.js';
import { readSmallFile } from '../../platform/read-file.js';
import { metadataKey } from './signer.js';
import { isSignerName } from './signer-names.js';

export interface PublicKey {
  readonly key: MetadataKey;
  readonly keyId: string;
  /** The name of the person or device that owns the secret. */
  readonly name: string;
}

const formatVersion = 1;
const maxBytes = 16_384;
const pemBegin = '-----BEGIN PUBLIC KEY-----';

/** @returns the text of a .pub file */
export function encodePublicKey(key: MetadataKey, name: string): string {
  const { keytype, scheme, keyval } = key;
  const file = { 'writ-pub': formatVersion, name, keyid: keyId(key), keytype, scheme, public: keyval.public };
  return `${JSON.stringify(file, null, 2)}\n`;
}

/** @returns the path of the .pub file for a .key file */
export function publicPathOf(keyPath: string): string {
  return keyPath.replace(/(?:\.key)?$/, '.pub');
}

/**
 * Reads a .pub file, the public part of a Writ key file, or a PEM public key.
 * @throws WritError KEY_UNREADABLE
 */
export function readPublicKey(path: string): PublicKey {
  const verdict = readSmallFile(path, { maxBytes });
  if (verdict.kind !== 'read') {
    throw unusable(path, verdict.why, verdict.kind === 'refused' ? verdict.cause : undefined);
  }
  const { bytes } = verdict;
  const text = bytes.toString('utf8').trimStart();
  if (text.startsWith(pemBegin)) return completeKey(path, readPem(path, text), undefined);
  const json = parseStrictJson(bytes);
  if (json.kind === 'refused') throw unusable(path, `it is not a public key: ${json.reason}`);
  const file = members(json.value);
  return completeKey(path, keyOf(path, file), file['name']);
}

function completeKey(path: string, key: MetadataKey, name: JsonValue | undefined): PublicKey {
  // Hosts would not count the signatures of such a key, so that the root would have one usable key less than it lists.
  if (publicKeyIdentity(key) === undefined)
    throw unusable(path, 'no host would accept it: its type or scheme is unknown, or it is too weak');
  const fromPath = basename(path).replace(/(?:\.pub|\.pem|\.key)+$/, '');
  return { key, keyId: keyId(key), name: [name, fromPath].find(isSignerName) ?? 'unnamed' };
}

function keyOf(path: string, file: Readonly<Record<string, JsonValue>>): MetadataKey {
  const { keytype, scheme } = file;
  const value = file['public'];
  if (file['writ-key'] !== undefined) {
    if (typeof value === 'string') return metadataKey(value);
    throw unusable(path, 'it has no public key');
  }
  if (file['writ-pub'] !== formatVersion) throw unusable(path, 'its format is unknown');
  if (typeof keytype !== 'string' || typeof scheme !== 'string' || typeof value !== 'string') {
    throw unusable(path, 'a part of it is missing');
  }
  const key = { keytype, scheme, keyval: { public: value } };
  if (file['keyid'] === keyId(key)) return key;
  throw unusable(path, 'its key id does not match its key');
}

function readPem(path: string, text: string): MetadataKey {
  let publicKey: KeyObject;
  try {
    publicKey = createPublicKey(text);
  } catch (error) {
    throw unusable(path, 'OpenSSL cannot read it', error);
  }
  const key = metadataKeyOf(publicKey);
  if (key !== undefined) return key;
  throw unusable(path, 'only Ed25519, ECDSA P-256 and RSA keys can be used');
}

function metadataKeyOf(publicKey: KeyObject): MetadataKey | undefined {
  // Exported again, so that each key has one text, without the line breaks and comments of the file.
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  switch (publicKey.asymmetricKeyType) {
    case 'ed25519':
      return metadataKey(publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex'));
    case 'ec':
      return { keytype: 'ecdsa', scheme: 'ecdsa-sha2-nistp256', keyval: { public: pem } };
    case 'rsa':
      return { keytype: 'rsa', scheme: 'rsassa-pss-sha256', keyval: { public: pem } };
    default:
      return undefined;
  }
}

function members(value: JsonValue): Readonly<Record<string, JsonValue>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, JsonValue>>)
    : {};
}

function unusable(path: string, why: string, cause?: unknown): WritError {
  return new WritError('KEY_UNREADABLE', `${path} cannot be used: ${why}`, { facts: { path, why }, cause });
}
