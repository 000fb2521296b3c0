// A directory of key files: the keys of a role, and the signers that are available now, external ones included. The
// metadata decides which key belongs to a role, never the file name alone.
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

/** The source of a passphrase: a file, a command, the environment, a person. */
export interface PassphraseSource {
  /**
   * @param path the locked key file
   * @param attempt 1 for the first time
   * @returns undefined when there is no (further) passphrase to try
   */
  ask(path: string, attempt: number): Promise<string | undefined>;
}

export interface KeyDirectory {
  readonly path: string;
  readonly passphrases: PassphraseSource;
  /** Used after the files of the directory, in order. */
  readonly external?: readonly ExternalCommand[];
}

/** A role with the keys that may sign it, from the root or from the targets that delegate to it. */
export interface SigningAuthority {
  readonly name: string;
  readonly keys: Readonly<Record<string, MetadataKey>>;
  readonly role: RoleKeys;
}

/** @returns the signing authority of a top-level role: its name, key ids and threshold, and all keys of the root by key id */
export function signingAuthorityOf(root: RootSigned, name: TopLevelRole): SigningAuthority {
  return { name, keys: root.keys, role: root.roles[name] };
}

const maxAttempts = 3;
const maxNamed = 10;
const keyFileName = /^[^.].{0,250}\.key$/;
const namedForRole = /^(root|targets|snapshot|timestamp)(?:-[0-9]{1,3})?\.key$/;

/** @returns the sorted names of all key files. @throws WritError KEY_UNREADABLE, KEYS_IN_REPOSITORY */
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
 * @returns as many signers as the role needs; undefined when too few of its keys are available
 * @throws WritError KEY_UNREADABLE, PASSPHRASE_NEEDED, PASSPHRASE_WRONG (after three attempts)
 */
export async function openKeysOf(
  keys: KeyDirectory,
  holder: SigningAuthority,
): Promise<readonly Signer[] | undefined> {
  const { threshold } = holder.role;
  const files = findKeyFiles(keys.path, holder).slice(0, threshold);
  const external = externalSigners(keys, holder, files).slice(0, threshold - files.length);
  if (files.length + external.length < threshold) return undefined;
  const signers: Signer[] = [];
  for (const file of files) signers.push(await openKey(file, keys.passphrases));
  return [...signers, ...external];
}

/** @returns true if openKeysOf would find enough keys. Opens no key and uses no device, so a later failure is possible */
export function hasAvailableKeys(keys: KeyDirectory, holder: SigningAuthority): boolean {
  const files = findKeyFiles(keys.path, holder);
  return files.length + externalSigners(keys, holder, files).length >= holder.role.threshold;
}

function externalSigners(
  { external = [] }: KeyDirectory,
  { name, keys, role }: SigningAuthority,
  files: readonly KeyFile[],
): Signer[] {
  const taken = new Set(files.map(keyIdOfFile));
  const left = role.keyids.flatMap((id) => {
    const key = Object.hasOwn(keys, id) ? keys[id] : undefined;
    return key === undefined || taken.has(id) ? [] : [key];
  });
  return external
    .filter((command) => command.serves(name))
    .map((command) => createExternalSigner(command, { role: name, keys: left }));
}

/** @returns true where the file names show that a server signs with this directory. @throws WritError as keyFilesIn */
export function hasOnlineKeys(directory: string): boolean {
  return keyFilesIn(directory).some((file) => isOnlineRole(namedForRole.exec(file)?.[1] ?? ''));
}

/**
 * Reads files that are named for the role first. Files that are named for another role are never opened, such as the other
 * keys of a server.
 */
function findKeyFiles(directory: string, { name, role }: SigningAuthority): KeyFile[] {
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

/** Ignores an unreadable file that is not named for the role. */
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
  return keyids.includes(keyIdOfFile(file));
}

/** @returns the id of the key in a key file, locked or not */
export function keyIdOfFile({ publicKey }: KeyFile): string {
  return keyId(metadataKey(publicKey));
}

/**
 * Opens as many keys of a role as its threshold requires: key files first, then external commands.
 * @returns exactly `threshold` signers; more available keys are not opened
 * @throws WritError KEYS_MISSING if too few are available, with the role and the directory; KEY_UNREADABLE, PASSPHRASE_NEEDED,
 *   PASSPHRASE_WRONG (after three attempts) for a key that cannot be opened
 */
export async function requireKeysOf(
  keys: KeyDirectory,
  holder: SigningAuthority,
): Promise<readonly Signer[]> {
  const signers = await openKeysOf(keys, holder);
  if (signers !== undefined) return signers;
  throw missingKeys(keys, holder);
}

/**
 * @param further a sentence that follows the hint of the error
 * @returns KEYS_MISSING with the role and the keys that the directory contains instead
 */
export function missingKeys(keys: KeyDirectory, holder: SigningAuthority, further?: string): WritError {
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

/**
 * @returns a text for a file that is named for the role and has a key of another repository, or an older one; undefined
 *   without such a file
 */
function describeForeignKey(directory: string, { name, role }: SigningAuthority): string | undefined {
  const files = keyFilesIn(directory).filter((file) => isNamedFor(name, file));
  for (const file of files) {
    const key = orUndefined(() => readKeyFile(join(directory, file)));
    if (key === undefined || isListed(role, key)) continue;
    const needed = role.keyids.map(shortKeyId).join(', ');
    return `${file} is a key, but none that this repository lists for ${name} (it is ${shortKeyId(keyIdOfFile(key))}, listed: ${needed})`;
  }
  return undefined;
}

/**
 * Unlocks one key, with up to three attempts for its passphrase.
 * @throws WritError PASSPHRASE_NEEDED, PASSPHRASE_WRONG, KEY_UNREADABLE
 */
export async function openKey(file: KeyFile, passphrases: PassphraseSource): Promise<KeySigner> {
  return createSigner(await openSeed(file, passphrases), file.publicKey);
}

/** Like openKey, for callers that write the key file again. @returns the secret itself */
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
