// A directory of key files: which of them are of a role, and who may sign now, external signers included. A key
// counts by what the metadata says of it, never by its file name alone.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError, isWritError, orUndefined, WritError } from '../../core/errors.js';
import { keyId } from '../../core/tuf/signature-schemes.js';
import {
  isOnlineRole,
  type MetadataKey,
  type RoleKeys,
  type RootSigned,
  type TopLevelRole,
} from '../../core/tuf/tuf-metadata.js';
import { createExternalSigner, type ExternalCommand } from './external-signer.js';
import { type KeyFile, readKeyFile, unlockKey, wrongPassphrase } from './key-file.js';
import { requireKeyPlace } from './key-place.js';
import { createSigner, type KeySigner, metadataKey, type Signer } from './signer.js';
import { shortKeyId } from './signer-names.js';

/** Where a passphrase comes from: a file, a command, the environment, a person. */
export interface PassphraseSource {
  /**
   * @param path the key file that is locked
   * @param attempt 1 for the first time
   * @returns undefined when there is nothing (more) to try
   */
  ask(path: string, attempt: number): Promise<string | undefined>;
}

export interface KeyDirectory {
  readonly path: string;
  readonly passphrases: PassphraseSource;
  /** Asked after the files of the directory, in order. */
  readonly external?: readonly ExternalCommand[];
}

/** A role and who may sign it, as its delegator says: the root, or the targets of a delegation. */
export interface RoleHolder {
  readonly name: string;
  readonly keys: Readonly<Record<string, MetadataKey>>;
  readonly role: RoleKeys;
}

/** @returns the holder of a top-level role */
export function holderOf(root: RootSigned, name: TopLevelRole): RoleHolder {
  return { name, keys: root.keys, role: root.roles[name] };
}

const maxAttempts = 3;
const maxNamed = 10;
const keyFileName = /^[^.].{0,250}\.key$/;
const namedForRole = /^(root|targets|snapshot|timestamp)(?:-[0-9]{1,3})?\.key$/;

/** @returns names of all key files, sorted. @throws WritError KEY_UNREADABLE, KEYS_IN_REPOSITORY */
export function keyFilesIn(directory: string): string[] {
  requireKeyPlace(directory);
  try {
    return readdirSync(directory)
      .filter((entry) => keyFileName.test(entry))
      .sort();
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return [];
    if (!isSystemError(error)) throw error;
    throw new WritError('KEY_UNREADABLE', `${directory} cannot be read: ${error.code}`, {
      facts: { path: directory, errno: error.code },
      cause: error,
    });
  }
}

/**
 * Opens the keys of a role.
 * @returns as many signers as the role needs, or undefined when the directory has not enough of its keys
 * @throws WritError KEY_UNREADABLE, PASSPHRASE_NEEDED, PASSPHRASE_WRONG (after three attempts)
 */
export async function openKeysOf(
  keys: KeyDirectory,
  holder: RoleHolder,
): Promise<readonly Signer[] | undefined> {
  const { threshold } = holder.role;
  const files = findKeyFiles(keys.path, holder).slice(0, threshold);
  const external = externalSigners(keys, holder, files).slice(0, threshold - files.length);
  if (files.length + external.length < threshold) return undefined;
  const signers: Signer[] = [];
  for (const file of files) signers.push(await openKey(file, keys.passphrases));
  return [...signers, ...external];
}

/** True if openKeysOf would find enough, as far as can be said without opening a key or asking a device. */
export function keysAtHand(keys: KeyDirectory, holder: RoleHolder): boolean {
  const files = findKeyFiles(keys.path, holder);
  return files.length + externalSigners(keys, holder, files).length >= holder.role.threshold;
}

function externalSigners(
  { external = [] }: KeyDirectory,
  { name, keys, role }: RoleHolder,
  files: readonly KeyFile[],
): Signer[] {
  const taken = new Set(files.map(keyIdOf));
  const left = role.keyids.flatMap((id) => {
    const key = Object.hasOwn(keys, id) ? keys[id] : undefined;
    return key === undefined || taken.has(id) ? [] : [key];
  });
  return external
    .filter((command) => command.serves(name))
    .map((command) => createExternalSigner(command, { role: name, keys: left }));
}

/** Whether a directory is one that a server signs from, by the names of its files. @throws WritError as keyFilesIn */
export function hasOnlineKeys(directory: string): boolean {
  return keyFilesIn(directory).some((file) => isOnlineRole(namedForRole.exec(file)?.[1] ?? ''));
}

/** Files named for the role first; those named for another role, as a server's neighbours, are never opened. */
function findKeyFiles(directory: string, { name, role }: RoleHolder): KeyFile[] {
  const names = keyFilesIn(directory);
  const isNamed = (file: string): boolean => isNamedFor(name, file);
  const named = names.filter(isNamed).map((file) => readKeyFile(join(directory, file)));
  const found = named.filter((file) => file !== undefined).filter((file) => isListed(role, file));
  if (found.length >= role.threshold) return found;
  const others = names.filter((file) => !isNamed(file) && !namedForRole.test(file));
  return [...found, ...others.flatMap((file) => readIfUsable(join(directory, file), role))];
}

function isNamedFor(role: string, file: string): boolean {
  return file === `${role}.key` || file.startsWith(`${role}-`);
}

/** A file that is not named for the role and cannot be read is not needed. */
function readIfUsable(path: string, role: RoleKeys): KeyFile[] {
  try {
    const file = readKeyFile(path);
    return file !== undefined && isListed(role, file) ? [file] : [];
  } catch (error) {
    if (isWritError(error)) return [];
    throw error;
  }
}

function isListed({ keyids }: RoleKeys, file: KeyFile): boolean {
  return keyids.includes(keyIdOf(file));
}

/** @returns the key id of what a key file holds, locked or not */
export function keyIdOf({ publicKey }: KeyFile): string {
  return keyId(metadataKey(publicKey));
}

/** @throws WritError KEYS_MISSING naming the role and where its keys were looked for */
export async function requireKeysOf(keys: KeyDirectory, holder: RoleHolder): Promise<readonly Signer[]> {
  const signers = await openKeysOf(keys, holder);
  if (signers !== undefined) return signers;
  throw missingKeys(keys, holder);
}

/**
 * @param further a sentence that follows the hint of the error
 * @returns KEYS_MISSING: the role, and what its directory has instead
 */
export function missingKeys(keys: KeyDirectory, holder: RoleHolder, further?: string): WritError {
  const { name, role } = holder;
  const { threshold, keyids } = role;
  const found = findKeyFiles(keys.path, holder).length;
  const present = keyFilesIn(keys.path).slice(0, maxNamed);
  const content = present.length === 0 ? 'it contains no .key file' : `it contains ${present.join(', ')}`;
  const others = describeForeignKey(keys.path, holder) ?? content;
  const message = `${keys.path} has ${found} of the ${threshold} ${name} keys that are needed: ${others}`;
  const hint = `One command makes all ${threshold} signatures: put the keys into one directory, or give --signer '${name}=CMD' for a key that is elsewhere. With \`--threshold 1\` each holder signs alone.`;
  return new WritError('KEYS_MISSING', message, {
    facts: { role: name, expected: threshold, directory: keys.path, keyIds: keyids },
    ...(threshold > 1 || further !== undefined
      ? { hint: `${threshold > 1 ? hint : ''} ${further ?? ''}`.trim() }
      : {}),
  });
}

/** @returns that a file named for the role has a key of another repository, or an older one; undefined without such a file */
function describeForeignKey(directory: string, { name, role }: RoleHolder): string | undefined {
  const files = keyFilesIn(directory).filter((file) => isNamedFor(name, file));
  for (const file of files) {
    const key = orUndefined(() => readKeyFile(join(directory, file)));
    if (key === undefined || isListed(role, key)) continue;
    const needed = role.keyids.map(shortKeyId).join(', ');
    return `${file} is a key, but none that this repository lists for ${name} (it is ${shortKeyId(keyIdOf(key))}, listed: ${needed})`;
  }
  return undefined;
}

/**
 * Unlocks one key, asking for its passphrase up to three times.
 * @throws WritError PASSPHRASE_NEEDED, PASSPHRASE_WRONG, KEY_UNREADABLE
 */
export async function openKey(file: KeyFile, passphrases: PassphraseSource): Promise<KeySigner> {
  return createSigner(await openSeed(file, passphrases));
}

/** As openKey, for who writes the file again. @returns the secret itself */
export async function openSeed(file: KeyFile, passphrases: PassphraseSource): Promise<Uint8Array> {
  if (file.secret.kind === 'plain') return unlockKey(file, undefined);
  for (let attempt = 1; ; attempt += 1) {
    const passphrase = await passphrases.ask(file.path, attempt);
    if (passphrase === undefined && attempt > 1) throw wrongPassphrase(file.path);
    try {
      return unlockKey(file, passphrase);
    } catch (error) {
      const again = error instanceof WritError && error.code === 'PASSPHRASE_WRONG' && attempt < maxAttempts;
      if (!again) throw error;
    }
  }
}
