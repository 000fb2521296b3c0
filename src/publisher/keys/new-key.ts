// Creates a key for one person or device: the secret file, and the public file to give away. The key belongs to a role only
// after a root or a delegation lists it.
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { type DurableFs, diskError, isDirectoryPresent } from '../../platform/disk/durable-fs.js';
import { createKeyFile, newSeed, requireNoKeys } from './key-file.js';
import { requireKeyPlace } from './key-place.js';
import { encodePublicKey, publicPathOf } from './public-key.js';
import { createSigner, type KeySigner } from './signer.js';

interface NewKeyOptions {
  /** Ends with `.key`; the public file is in the same directory. */
  readonly path: string;
  readonly name: string;
  /** Without it, the secret is not encrypted. */
  readonly passphrase?: string | undefined;
  readonly durableFs: DurableFs;
}

/**
 * Writes NAME.key (0600) and NAME.pub, creates a missing directory (0700), and flushes the directory.
 * @throws WritError KEY_EXISTS, KEYS_IN_REPOSITORY, DISK_*
 */
export function makeKey(options: NewKeyOptions): KeySigner {
  const { path, durableFs } = options;
  const directory = dirname(path);
  requireKeyPlace(directory);
  makeParents(directory);
  durableFs.ensureDirectory('keys.directory', directory, 0o700);
  requireNoKeys([path, publicPathOf(path)]);
  const signer = writeKeyPair(options);
  durableFs.flushDirectory('keys.flush', directory);
  return signer;
}

/** Writes only the two files. The caller flushes the directory, once for many keys. */
export function writeKeyPair(options: NewKeyOptions): KeySigner {
  const { path, name, durableFs } = options;
  const seed = newSeed();
  const signer = createSigner(seed);
  createKeyFile({ ...options, seed });
  try {
    durableFs.createFile('keys.public', publicPathOf(path), encodePublicKey(signer.key, name), 0o644);
  } catch (error) {
    // The new secret is not used yet. Its file would refuse the next attempt.
    durableFs.removeFile('keys.undo', path);
    throw error;
  }
  return signer;
}

/** Creates the parent directories of a directory. @throws WritError DISK_* */
export function makeParents(directory: string): void {
  const parent = dirname(directory);
  // mkdir reports EEXIST where a parent is a file, as if the name were taken.
  if (isDirectoryPresent('directory', parent)) return;
  try {
    fs.mkdirSync(parent, { recursive: true });
  } catch (error) {
    throw diskError(error, { op: 'directory', path: parent });
  }
}
