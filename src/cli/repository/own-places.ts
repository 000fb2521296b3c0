// The check of paths that every command of a publisher passes: the directories that --keys and --repository name, and files of keys,
// must not be another user's to change. Opens nothing in them.
import { basename, dirname } from 'node:path';
import { requireTrustedPath } from '../../platform/disk/trusted-path.js';

/** What a command opens in such a directory; a link there is followed by what opens it. */
const openedIn: Readonly<Record<string, (name: string) => boolean>> = {
  keys: (name) => name.endsWith('.key') || name === 'root.json',
  repository: (name) => name === 'metadata' || name === 'targets',
};

/**
 * @param values of the flags of a command, by name; `keys` and `repository` are directories
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

/** As requireOwnPlaces, for one key file that is there or will be. @throws WritError PATH_UNSAFE */
export function requireOwnKeyFile(path: string): void {
  requireTrustedPath(dirname(path), (name) => name === basename(path));
}
