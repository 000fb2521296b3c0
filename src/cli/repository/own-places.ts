// Checks the paths of every publisher command: no other user may be able to change the directories of --keys and
// --repository, or key files. Opens nothing in them.
import { basename, dirname } from 'node:path';
import { requireTrustedPath } from '../../platform/disk/trusted-path.js';

/** The files that a command opens in such a directory. A link there is checked where the file is opened. */
const openedIn: Readonly<Record<string, (name: string) => boolean>> = {
  keys: (name) => name.endsWith('.key') || name === 'root.json',
  repository: (name) => name === 'metadata' || name === 'targets',
};

/**
 * @param values the flags of a command by name; `keys` and `repository` are directories
 * @param at makes a path of the command line absolute
 * @throws WritError PATH_UNSAFE
 */
export function requireOwnPlaces(
  values: Readonly<Record<string, unknown>>,
  at: (path: string) => string,
): void {
  for (const [name, isOpened] of Object.entries(openedIn)) {
    const value = values[name];
    if (typeof value === 'string') requireTrustedPath(at(value), isOpened);
  }
}

/** Like requireOwnPlaces, for one present or future key file. @throws WritError PATH_UNSAFE */
export function requireOwnKeyFile(path: string): void {
  requireTrustedPath(dirname(path), (name) => name === basename(path));
}
