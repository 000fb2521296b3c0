// Opens the directory of an embedded store, and gives its files to this user alone. Every change goes through the descriptor of the
// directory that was checked first, so that no link can lead it elsewhere. Knows no table and no database.
import * as fs from 'node:fs';
import { isSystemError } from '../../core/errors.js';
import { requireOwnStateFile, requireStateDirectory } from '../../platform/disk/state-directory.js';

const { O_RDONLY, O_RDWR, O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;

export interface StoreDirectory {
  /** Without links. */
  readonly path: string;
  list(): string[];
  /** Gives the directory mode 0700. */
  setPrivate(): void;
  /**
   * Creates a file if it is missing, and gives it mode 0600.
   * @throws WritError PATH_UNSAFE for a link, another user's file, and what is not a file
   */
  ensurePrivateFile(name: string): void;
  /** Checks a file that another library opens by its path; a missing file is accepted. @throws WritError PATH_UNSAFE */
  requireOwnFile(name: string): void;
  close(): void;
}

/**
 * Creates the directory if it is missing, checks it as requireStateDirectory does, and opens it.
 * @throws WritError PATH_UNSAFE; the error of the system
 */
export function openStoreDirectory(path: string): StoreDirectory {
  requireStateDirectory(path, 'writ fleet');
  fs.mkdirSync(path, { recursive: true, mode: 0o700 });
  // Again, because a parent may have been created by another user in between.
  requireStateDirectory(path, 'writ fleet');
  const real = fs.realpathSync(path);
  const descriptor = fs.openSync(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const below = `/proc/self/fd/${descriptor}`;
  return {
    path: real,
    list: () => fs.readdirSync(below),
    setPrivate: () => fs.fchmodSync(descriptor, 0o700),
    ensurePrivateFile: (name) => ensurePrivateFile(`${below}/${name}`, `${real}/${name}`),
    requireOwnFile: (name) => {
      const stat = fs.lstatSync(`${below}/${name}`, { throwIfNoEntry: false });
      if (stat !== undefined) requireOwnStateFile(`${real}/${name}`, stat);
    },
    close: () => fs.closeSync(descriptor),
  };
}

/** @param path through the descriptor of the directory */
function ensurePrivateFile(path: string, shown: string): void {
  const descriptor = openUnlinked(path, shown);
  try {
    requireOwnStateFile(shown, fs.fstatSync(descriptor));
    fs.fchmodSync(descriptor, 0o600);
  } finally {
    fs.closeSync(descriptor);
  }
}

function openUnlinked(path: string, shown: string): number {
  try {
    // O_NONBLOCK: opening a FIFO would wait for another process.
    return fs.openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  } catch (error) {
    if (isSystemError(error) && error.code === 'ELOOP') requireOwnStateFile(shown, fs.lstatSync(path));
    throw error;
  }
}
