// Whether a directory of state that an option names belongs to this user and root alone. Another user who owns a part of the path, or
// a link in the directory, would choose which files root creates, changes and trusts. Only checks; never repairs what is wrong.
import * as fs from 'node:fs';
import { WritError } from '../../core/errors.js';
import { isOwnGroup } from '../users/group-id.js';
import { asUser, userName } from '../users/user-id.js';
import { nearestExisting, ownUsers, requireSafeParts } from './safe-path.js';

const writableByGroup = 0o020;
const writableByAll = 0o002;
const sticky = 0o1000;

/**
 * Checks the owner and the mode of a directory, of each directory above it, and of both sides of each link. For a missing directory
 * the nearest parent is checked.
 * @param command for the hint, as `writ fleet`
 * @throws WritError PATH_UNSAFE unless only root and this user can change the path
 */
export function requireStateDirectory(path: string, command: string): void {
  const nearest = nearestExisting(path);
  const own = fs.realpathSync(nearest);
  requireSafeParts(nearest, (part, stat) => {
    if (!ownUsers().includes(stat.uid)) throw foreign(part, stat, part === own ? command : undefined);
    if (othersWrite(stat)) throw shared(part, stat);
  });
}

/** Checks the file of a directory of state: a file of root or of this user, and no link. @throws WritError PATH_UNSAFE */
export function requireOwnStateFile(path: string, stat: fs.Stats): void {
  if (!stat.isFile()) throw notAFile(path, stat);
  if (!ownUsers().includes(stat.uid)) throw foreign(path, stat, undefined);
}

function othersWrite(stat: fs.Stats): boolean {
  const isStickyOfRoot = stat.uid === 0 && (stat.mode & sticky) !== 0;
  // The mode of a link has no meaning.
  if (stat.isSymbolicLink() || isStickyOfRoot) return false;
  return (stat.mode & writableByAll) !== 0 || ((stat.mode & writableByGroup) !== 0 && !isOwnGroup(stat.gid));
}

/** @param command left out: the path is not the directory itself, so its owner cannot run the command either */
function foreign(path: string, stat: fs.Stats, command: string | undefined): WritError {
  const name = userName(stat.uid);
  const hint =
    command === undefined
      ? `Move the directory to a place that only root and its user can change.`
      : `Run the command as ${name}: ${asUser(stat.uid)} ${command} ...`;
  return new WritError('PATH_UNSAFE', `${path} belongs to another user: ${name}`, {
    facts: factsOf(path, stat),
    hint,
  });
}

function shared(path: string, stat: fs.Stats): WritError {
  return new WritError('PATH_UNSAFE', `${path} can be changed by other users than root and you`, {
    facts: factsOf(path, stat),
    hint: `Remove the permission: chmod go-w ${path}`,
  });
}

function notAFile(path: string, stat: fs.Stats): WritError {
  return new WritError('PATH_UNSAFE', `${path} is a link, or not a file`, {
    facts: factsOf(path, stat),
    hint: 'Put the file itself there. The directory that contains it may be reached by a link of root.',
  });
}

function factsOf(path: string, { uid, mode }: fs.Stats): { path: string; uid: number; mode: string } {
  return { path, uid, mode: (mode & 0o7777).toString(8) };
}
