// What would keep a server from re-signing, found while there is still time: a repository that this user cannot write to, and a
// directory of online keys that lacks some which the root lists. Looks only: opens no secret, signs nothing, takes no lock.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import { onlineRoles, type RootSigned } from '../../core/tuf/tuf-metadata.js';
import { hasOnlineKeys, holderOf, keysAtHand, missingKeys } from '../keys/key-directory.js';
import { requireOwnRepository } from '../repository/repository-owner.js';

/** @returns why this user could not write here what a re-signing writes: DISK_DENIED, REPOSITORY_OWNER */
export function writeObstacle(repository: string): WritError | undefined {
  try {
    requireOwnRepository(repository);
    for (const name of ['.', 'metadata', '.lock']) requireWritable(join(repository, name));
    return undefined;
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
}

/** @throws WritError DISK_DENIED, also on a file system that is mounted read-only */
function requireWritable(path: string): void {
  try {
    fs.accessSync(path, fs.constants.W_OK);
  } catch (error) {
    // A lock that is not there is made; a directory that is not there has its own problem.
    if (!isSystemError(error) || error.code === 'ENOENT') return;
    throw new WritError('DISK_DENIED', `this user cannot write to ${path}: ${error.code}`, {
      facts: { path, errno: error.code },
      cause: error,
    });
  }
}

/**
 * @param keys a directory with one online key at least; of the publisher's others nobody expects them
 * @returns KEYS_MISSING for the first online role that lacks keys of this root there
 */
export function keyObstacle(keys: string, root: RootSigned): WritError | undefined {
  try {
    if (!hasOnlineKeys(keys)) return undefined;
    const directory = { path: keys, passphrases: { ask: async () => undefined } };
    const lacking = onlineRoles
      .map((role) => holderOf(root, role))
      .find((one) => !keysAtHand(directory, one));
    return lacking && missingKeys(directory, lacking);
  } catch (error) {
    // Whoever may not read the keys cannot judge them either, and asked for something else.
    if (isWritError(error)) return undefined;
    throw error;
  }
}
