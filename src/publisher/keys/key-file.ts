// One secret key in one file: Ed25519, encrypted with a passphrase (scrypt and tweetnacl's secretbox) or, on request,
// unencrypted. Defines the format of the file, and bounds the memory and time that it can cost. A key file is created once,
// and replaced only by the same key under another passphrase. Signing is in signer.
import { createPrivateKey, createPublicKey, randomBytes, scryptSync } from 'node:crypto';
import * as fs from 'node:fs';
import nacl from 'tweetnacl';
import { isSystemError, WritError } from '../../core/errors.js';
import { type DurableFs, diskError } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import { requireKeyPlace } from './key-place.js';
import { isSignerName } from './signer-names.js';

/** The parsed content of a key file; the secret may still be locked. */
export interface KeyFile {
  readonly path: string;
  /** Hex; not secret. */
  readonly publicKey: string;
  /** The name of the person or device that owns the key, for people. */
  readonly name?: string;
  readonly secret: Secret;
}

type Secret =
  | { readonly kind: 'plain'; readonly seed: Uint8Array }
  | {
      readonly kind: 'locked';
      readonly scrypt: ScryptParameters;
      readonly nonce: Uint8Array;
      readonly box: Uint8Array;
    };

interface ScryptParameters {
  readonly N: number;
  readonly r: number;
  readonly p: number;
  readonly salt: Uint8Array;
}

const formatVersion = 1;
const maxKeyFileBytes = 16_384;
const seedBytes = 32;
/** About 100 ms and 32 MB for each guess. */
const newScrypt = { N: 2 ** 15, r: 8, p: 1 };
const maxScryptMemoryBytes = 256 * 1024 * 1024;

/** @returns 32 random bytes: the complete secret of an Ed25519 key */
export function newSeed(): Uint8Array {
  return Uint8Array.from(randomBytes(seedBytes));
}

interface CreateKeyOptions {
  readonly path: string;
  readonly seed: Uint8Array;
  /** Without it, the seed is written unencrypted, and only the mode of the file protects it. */
  readonly passphrase?: string | undefined;
  readonly name?: string | undefined;
  readonly durableFs: DurableFs;
}

/**
 * Writes a new key file with mode 0600. The caller flushes its directory.
 * @throws WritError KEY_EXISTS, DISK_*
 */
export function createKeyFile(options: CreateKeyOptions): void {
  const { path, durableFs } = options;
  if (isPathTaken(path)) throw keyExists(path);
  durableFs.createFile('keys.create', path, keyFileText(options), 0o600);
}

/**
 * Writes the same secret under another passphrase, with one rename: the file is always complete, the old or the new one.
 * @throws WritError KEY_UNREADABLE when the new content could not be opened again (nothing is written), DISK_*
 */
export function replaceKeyFile(options: CreateKeyOptions): void {
  const { path, seed, passphrase, durableFs } = options;
  const text = keyFileText(options);
  const again = unlockKey(parseKeyFile(path, JSON.parse(text)), passphrase);
  if (!Buffer.from(again).equals(seed)) throw unreadable(path, 'the new key file cannot be opened');
  durableFs.writeFile('keys.replace', path, text, 0o600);
}

function keyFileText({ seed, passphrase, name }: CreateKeyOptions): string {
  const secret = passphrase === undefined ? { secret: base64(seed) } : lock(seed, passphrase);
  const named = name === undefined ? {} : { name };
  const file = { 'writ-key': formatVersion, ...named, scheme: 'ed25519', public: publicKeyOf(seed) };
  return `${JSON.stringify({ ...file, ...secret }, null, 2)}\n`;
}

/** @throws WritError KEY_EXISTS if any of the paths exists */
export function requireNoKeys(paths: readonly string[]): void {
  const taken = paths.find(isPathTaken);
  if (taken !== undefined) throw keyExists(taken);
}

/** @returns true also for a dangling link. @throws WritError DISK_* */
export function isPathTaken(path: string): boolean {
  try {
    return fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (isSystemError(error, 'ENOTDIR')) return false;
    throw diskError(error, { op: 'keys.look', path });
  }
}

function keyExists(path: string): WritError {
  return new WritError('KEY_EXISTS', `${path} exists`, { facts: { path } });
}

function lock(seed: Uint8Array, passphrase: string): Record<string, unknown> {
  const salt = randomBytes(16);
  const nonce = randomBytes(nacl.secretbox.nonceLength);
  const box = nacl.secretbox(seed, nonce, deriveKey(passphrase, { ...newScrypt, salt }));
  const scrypt = { ...newScrypt, salt: base64(salt) };
  return { scrypt, nonce: base64(nonce), box: base64(box) };
}

function deriveKey(passphrase: string, { N, r, p, salt }: ScryptParameters): Uint8Array {
  // Another keyboard may produce the same letters in decomposed form.
  const bytes = Buffer.from(passphrase.normalize('NFC'), 'utf8');
  const options = { N, r, p, maxmem: 2 * maxScryptMemoryBytes };
  return Uint8Array.from(scryptSync(bytes, salt, nacl.secretbox.keyLength, options));
}

/**
 * Reads a key file without unlocking it.
 * @returns undefined when the file is missing
 * @throws WritError KEY_UNREADABLE, KEYS_IN_REPOSITORY
 */
export function readKeyFile(path: string): KeyFile | undefined {
  requireKeyPlace(path);
  const verdict = readSmallFile(path, { maxBytes: maxKeyFileBytes });
  if (verdict.kind === 'absent') return undefined;
  if (verdict.kind === 'refused') throw unreadable(path, verdict.why);
  try {
    return parseKeyFile(path, JSON.parse(verdict.bytes.toString('utf8')));
  } catch (error) {
    if (error instanceof SyntaxError) throw unreadable(path, 'it is not JSON');
    throw error;
  }
}

function parseKeyFile(path: string, value: unknown): KeyFile {
  const file = memberObject(value);
  if (file['writ-key'] !== formatVersion || file['scheme'] !== 'ed25519') {
    throw unreadable(path, 'its format or scheme is unknown');
  }
  const publicKey = file['public'];
  if (typeof publicKey !== 'string' || !/^[0-9a-f]{64}$/.test(publicKey)) {
    throw unreadable(path, 'it has no public key');
  }
  const name = file['name'];
  return { path, publicKey, secret: parseSecret(path, file), ...(isSignerName(name) ? { name } : {}) };
}

function parseSecret(path: string, file: Readonly<Record<string, unknown>>): Secret {
  const plain = file['secret'];
  if (plain !== undefined) return { kind: 'plain', seed: bytesOf(path, plain, seedBytes) };
  const { N, r, p, salt } = memberObject(file['scrypt']);
  if (!isCount(N) || !isCount(r) || !isCount(p)) throw unreadable(path, 'it has no scrypt parameters');
  // Attack: scrypt parameters of a foreign key file that occupy the CPU for hours, or use up the memory.
  const bounded = Number.isInteger(Math.log2(N)) && N > 1 && p <= 16 && 128 * N * r <= maxScryptMemoryBytes;
  if (!bounded) throw unreadable(path, 'its scrypt parameters are out of bounds');
  const scrypt = { N, r, p, salt: bytesOf(path, salt, 16) };
  const nonce = bytesOf(path, file['nonce'], nacl.secretbox.nonceLength);
  const box = bytesOf(path, file['box'], seedBytes + nacl.secretbox.overheadLength);
  return { kind: 'locked', scrypt, nonce, box };
}

function memberObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

function bytesOf(path: string, value: unknown, length: number): Uint8Array {
  const bytes = Buffer.from(typeof value === 'string' ? value : '', 'base64');
  if (bytes.length !== length) throw unreadable(path, 'a part of it has the wrong length');
  return Uint8Array.from(bytes);
}

/**
 * Opens the secret of a key file.
 * @returns the seed
 * @throws WritError PASSPHRASE_NEEDED, PASSPHRASE_WRONG; KEY_UNREADABLE if the public key does not match the secret key
 */
export function unlockKey(file: KeyFile, passphrase: string | undefined): Uint8Array {
  const seed = openSecret(file, passphrase);
  if (!isPublicKeyOf(file.publicKey, seed))
    throw unreadable(file.path, 'its public key does not belong to its secret key');
  return seed;
}

function openSecret({ path, secret }: KeyFile, passphrase: string | undefined): Uint8Array {
  if (secret.kind === 'plain') return secret.seed;
  if (passphrase === undefined) {
    throw new WritError('PASSPHRASE_NEEDED', `${path} is locked`, { facts: { path } });
  }
  const seed = nacl.secretbox.open(secret.box, secret.nonce, deriveKey(passphrase, secret.scrypt));
  if (seed !== null) return seed;
  throw wrongPassphrase(path);
}

/** @returns the error PASSPHRASE_WRONG for a key file */
export function wrongPassphrase(path: string): WritError {
  return new WritError('PASSPHRASE_WRONG', `the passphrase does not open ${path}`, { facts: { path } });
}

/** The DER bytes before the seed of an Ed25519 secret key (RFC 8410 section 7, PKCS #8 version 0). */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');

/**
 * Derives the public key with node:crypto. tweetnacl needs as long for it as for a signature, and every opened key needs
 * it.
 * @returns hex
 */
export function publicKeyOf(seed: Uint8Array): string {
  const der = Buffer.concat([pkcs8Prefix, seed]);
  const secretKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const { x = '' } = createPublicKey(secretKey).export({ format: 'jwk' });
  return Buffer.from(x, 'base64url').toString('hex');
}

/**
 * Compares a public key with that of a secret, in a tenth of the time of publicKeyOf, because OpenSSL decodes DER slowly.
 * @param publicKey hex
 * @returns false also for a text that is no public key
 */
export function isPublicKeyOf(publicKey: string, seed: Uint8Array): boolean {
  const x = Buffer.from(publicKey, 'hex').toString('base64url');
  const jwk = { kty: 'OKP', crv: 'Ed25519', d: Buffer.from(seed).toString('base64url'), x };
  try {
    // The private key is made from `d` alone: its export has the `x` that belongs to `d`.
    return createPublicKey(createPrivateKey({ key: jwk, format: 'jwk' })).export({ format: 'jwk' }).x === x;
  } catch {
    // Another version of Node may compare the two itself.
    return false;
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function unreadable(path: string, why: string): WritError {
  return new WritError('KEY_UNREADABLE', `${path} cannot be used: ${why}`, { facts: { path, why } });
}
