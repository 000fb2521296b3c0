// Checks whether a command can trust a key directory or a repository. Another user who can rename a directory of the path, or who
// owns a link in it, would choose the keys, the root and the files that a publisher writes. Changes nothing.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { isOwnGroup } from '../users/group-id.js';
import { nearestExisting, ownUsers, requireSafeParts, trustedOwners } from './safe-path.js';

const writableByGroup = 0o020;
const writableByAll = 0o002;
/** A key directory has few files. In a larger directory no file has the name of a key of Writ. */
const maxEntries = 10_000;

/**
 * Checks the owners of a directory, of each directory above it, and of the entries that a publisher opens in it. Allowed are root,
 * this user, and the owner of the directory if no other user could have created it. For a missing directory the nearest existing
 * parent is checked.
 * @param isOpened true for names of entries that the command opens
 * @throws WritError PATH_UNSAFE
 */
export function requireTrustedPath(path: string, isOpened: (name: string) => boolean): void {
  const owners = trustedOwners(path);
  const check = (part: string): void =>
    requireSafeParts(part, (at, stat) => requireTrustedPart(at, stat, owners));
  check(nearestExisting(path));
  for (const name of entriesOf(path).filter(isOpened)) {
    const entry = join(path, name);
    requireTrustedLink(entry);
    check(entry);
  }
}

/**
 * Refuses a link of another user, because that user would choose the file that root opens or writes. Accepts anything else.
 * @throws WritError PATH_UNSAFE
 */
export function requireTrustedLink(path: string): void {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink() && !ownUsers().includes(stat.uid)) throw unsafe(path, stat);
}

function entriesOf(directory: string): string[] {
  try {
    return fs.readdirSync(directory).slice(0, maxEntries);
  } catch {
    // Missing or not readable: the command reports it when it opens the directory.
    return [];
  }
}

function requireTrustedPart(part: string, stat: fs.Stats, owners: readonly number[]): void {
  const isSticky = stat.uid === 0 && (stat.mode & 0o1000) !== 0;
  const othersWrite =
    (stat.mode & writableByAll) !== 0 || (stat.mode & writableByGroup && !isOwnGroup(stat.gid));
  if (owners.includes(stat.uid) && (!othersWrite || isSticky || stat.isSymbolicLink())) return;
  throw unsafe(part, stat);
}

/** Only these can be made private by chmod: `/dev/null` must stay writable for all users. */
const fileOrDirectory = [fs.constants.S_IFREG, fs.constants.S_IFDIR, fs.constants.S_IFLNK];

function unsafe(path: string, { uid, mode }: fs.Stats): WritError {
  const canBePrivate = fileOrDirectory.includes(mode & fs.constants.S_IFMT);
  return new WritError('PATH_UNSAFE', `${path} can be changed by other users than root and you`, {
    facts: { path, uid, mode: (mode & 0o7777).toString(8) },
    hint: `${canBePrivate ? `chmod go-w ${path}` : 'Choose another path: this one is neither a file nor a directory'}, or keep keys and repositories in a directory of your own. A work directory of CI may be writable for all users: use one of mktemp -d.`,
  });
}
