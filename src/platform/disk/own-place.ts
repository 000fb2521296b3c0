// Whether a directory of keys, or a repository, can be trusted by the command that opens it: another user who can rename a directory
// on the way, or who owns a link in it, would choose the keys, the root and the files that a publisher writes. Looks only.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { isOwnGroup } from '../users/group-id.js';
import { agentOwners, nearestThere, ourOwners, requireSafeParts } from './safe-path.js';

const writableByGroup = 0o020;
const writableByAll = 0o002;
/** A key directory has a few files; in a larger one nothing is a key of Writ by its name. */
const maxEntries = 10_000;

/**
 * Checks the owners of a directory, of each directory above it and of the entries that a publisher opens in it: root, this user, or
 * the owner of the directory if nobody else could have put it there. A place that is missing is its parent's to make.
 * @param isOpened names in the directory that the command opens
 * @throws WritError PATH_UNSAFE
 */
export function requireOwnPlace(path: string, isOpened: (name: string) => boolean): void {
  const owners = agentOwners(path);
  const check = (part: string): void =>
    requireSafeParts(part, (at, stat) => requireOwnPart(at, stat, owners));
  check(nearestThere(path));
  for (const name of entriesOf(path).filter(isOpened)) {
    const entry = join(path, name);
    requireOwnLink(entry);
    check(entry);
  }
}

/**
 * Refuses a link of another user, because that user would choose what root opens or writes; anything else is accepted.
 * @throws WritError PATH_UNSAFE
 */
export function requireOwnLink(path: string): void {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink() && !ourOwners().includes(stat.uid)) throw unsafe(path, stat);
}

function entriesOf(directory: string): string[] {
  try {
    return fs.readdirSync(directory).slice(0, maxEntries);
  } catch {
    // Missing, or not readable: the command that opens it has its own error for that.
    return [];
  }
}

function requireOwnPart(part: string, stat: fs.Stats, owners: readonly number[]): void {
  const isSticky = stat.uid === 0 && (stat.mode & 0o1000) !== 0;
  const othersWrite =
    (stat.mode & writableByAll) !== 0 || (stat.mode & writableByGroup && !isOwnGroup(stat.gid));
  if (owners.includes(stat.uid) && (!othersWrite || isSticky || stat.isSymbolicLink())) return;
  throw unsafe(part, stat);
}

/** All users may write `/dev/null`, and no change of its mode makes it a place for keys. */
const fileOrDirectory = [fs.constants.S_IFREG, fs.constants.S_IFDIR, fs.constants.S_IFLNK];

function unsafe(path: string, { uid, mode }: fs.Stats): WritError {
  const canBePrivate = fileOrDirectory.includes(mode & fs.constants.S_IFMT);
  return new WritError('PATH_UNSAFE', `${path} can be changed by other users than root and you`, {
    facts: { path, uid, mode: (mode & 0o7777).toString(8) },
    hint: `${canBePrivate ? `chmod go-w ${path}` : 'Choose another path: this one is neither a file nor a directory'}, or keep keys and repositories in a directory of your own. A work directory of CI may be writable for everybody: use one of mktemp -d.`,
  });
}
