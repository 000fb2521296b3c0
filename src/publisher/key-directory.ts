// A directory of key files: which file holds which role's key, and who of them may sign now. A key counts by
// what the root says of it, never by its file name alone. Reads only the files of the roles it is asked for.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError, WritError } from '../core/errors.js';
import { keyId } from '../core/signature-schemes.js';
import type { RootSigned, TopLevelRole } from '../core/tuf-metadata.js';
import { type KeyFile, readKeyFile, unlockKey } from './key-file.js';
import { createSigner, metadataKey, type Signer } from './signer.js';

/** Where a passphrase comes from: a file, the environment, a person. */
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
}

const maxAttempts = 3;

/** @returns names of the key files of a role, as `root-1.key` or `targets.key`, sorted */
export function keyFileNames(directory: string, role: TopLevelRole): string[] {
  const name = new RegExp(`^${role}(-[0-9]{1,3})?\\.key$`);
  try {
    return readdirSync(directory)
      .filter((entry) => name.test(entry))
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
export async function openRoleKeys(
  keys: KeyDirectory,
  role: TopLevelRole,
  root: RootSigned,
): Promise<readonly Signer[] | undefined> {
  const { keyids, threshold } = root.roles[role];
  const files = keyFileNames(keys.path, role)
    .map((name) => readKeyFile(join(keys.path, name)))
    .filter((file) => file !== undefined)
    .filter((file) => keyids.includes(keyId(metadataKey(file.publicKey))));
  if (files.length < threshold) return undefined;
  const signers: Signer[] = [];
  for (const file of files.slice(0, threshold)) signers.push(await openKey(file, keys.passphrases));
  return signers;
}

/** @throws WritError KEYS_MISSING naming the role and where its keys were looked for */
export async function requireRoleKeys(
  keys: KeyDirectory,
  role: TopLevelRole,
  root: RootSigned,
): Promise<readonly Signer[]> {
  const signers = await openRoleKeys(keys, role, root);
  if (signers !== undefined) return signers;
  const { threshold } = root.roles[role];
  throw new WritError('KEYS_MISSING', `${keys.path} has not the ${threshold} ${role} keys that are needed`, {
    facts: { role, expected: threshold, directory: keys.path, keyIds: root.roles[role].keyids },
  });
}

async function openKey(file: KeyFile, passphrases: PassphraseSource): Promise<Signer> {
  if (file.secret.kind === 'plain') return createSigner(unlockKey(file, undefined));
  for (let attempt = 1; ; attempt += 1) {
    const passphrase = await passphrases.ask(file.path, attempt);
    if (passphrase === undefined && attempt > 1) throw wrongPassphrase(file.path);
    try {
      return createSigner(unlockKey(file, passphrase));
    } catch (error) {
      const again = error instanceof WritError && error.code === 'PASSPHRASE_WRONG' && attempt < maxAttempts;
      if (!again) throw error;
    }
  }
}

function wrongPassphrase(path: string): WritError {
  return new WritError('PASSPHRASE_WRONG', `the passphrase does not open ${path}`, { facts: { path } });
}
