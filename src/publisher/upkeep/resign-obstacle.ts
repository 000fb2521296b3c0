// Finds the reasons why a server could not re-sign, before a signature is needed: a repository that this user cannot write,
// or online keys of the root that are missing from the key directory. Opens no secret, signs nothing, takes no lock.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import { onlineRoles, type RootSigned } from '../../core/tuf/tuf-metadata.js';
import { hasAvailableKeys, hasOnlineKeys, missingKeys, signingAuthorityOf } from '../keys/key-directory.js';
import { requireOwnRepository } from '../repository/repository-owner.js';

/** @returns DISK_DENIED or REPOSITORY_OWNER where this user cannot write the files of a re-signing; undefined where it can */
export function findWriteObstacle(repository: string): WritError | undefined {
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
    // A missing lock file is created at its first use. A missing directory is reported as another problem.
    if (!isSystemError(error) || error.code === 'ENOENT') return;
    throw new WritError('DISK_DENIED', `this user cannot write to ${path}: ${error.code}`, {
      facts: { path, errno: error.code },
      cause: error,
    });
  }
}

/**
 * @param keys a directory that contains online keys; without any, it belongs to a publisher and is not checked
 * @returns KEYS_MISSING for the first online role with too few keys of this root in the directory; undefined without one
 */
export function findKeyObstacle(keys: string, root: RootSigned): WritError | undefined {
  try {
    if (!hasOnlineKeys(keys)) return undefined;
    const directory = { path: keys, passphrases: { ask: async () => undefined } };
    const lacking = onlineRoles
      .map((role) => signingAuthorityOf(root, role))
      .find((one) => !hasAvailableKeys(directory, one));
    return lacking && missingKeys(directory, lacking);
  } catch (error) {
    // An unreadable key directory cannot be judged here. The command that needs its keys reports it.
    if (isWritError(error)) return undefined;
    throw error;
  }
}
