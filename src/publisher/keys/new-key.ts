// Makes one key for one person or device: the secret file, and the public one to give away. Belongs to no role
// until a root, or a delegation, lists it.
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { type DurableFs, diskError, isDirectoryPresent } from '../../platform/disk/durable-fs.js';
import { createKeyFile, newSeed, requireNoKeys } from './key-file.js';
import { requireKeyPlace } from './key-place.js';
import { encodePublicKey, publicPathOf } from './public-key.js';
import { createSigner, type KeySigner } from './signer.js';

interface NewKeyOptions {
  /** Ends with `.key`; the public file is beside it. */
  readonly path: string;
  readonly name: string;
  /** Absent: the secret is not encrypted. */
  readonly passphrase?: string | undefined;
  readonly durableFs: DurableFs;
}

/**
 * Writes NAME.key (0600) and NAME.pub; the directory is made (0700) where it is missing, and flushed by the caller
 * who makes several, else here.
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

/** The two files alone, for who flushes the directory once for many. */
export function writeKeyPair(options: NewKeyOptions): KeySigner {
  const { path, name, durableFs } = options;
  const seed = newSeed();
  const signer = createSigner(seed);
  createKeyFile({ ...options, seed });
  try {
    durableFs.createFile('keys.public', publicPathOf(path), encodePublicKey(signer.key, name), 0o644);
  } catch (error) {
    // Nobody knows this secret yet, and its file would refuse the next try.
    durableFs.removeFile('keys.undo', path);
    throw error;
  }
  return signer;
}

/** Makes what a directory is in. @throws WritError DISK_* */
export function makeParents(directory: string): void {
  const parent = dirname(directory);
  // mkdir answers EEXIST for a file above the directory, as if the name were taken.
  if (isDirectoryPresent('directory', parent)) return;
  try {
    fs.mkdirSync(parent, { recursive: true });
  } catch (error) {
    throw diskError(error, { op: 'directory', path: parent });
  }
}
