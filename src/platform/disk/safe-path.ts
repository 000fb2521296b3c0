// Checks whether a path can be trusted. A user who can write to a directory of the path can replace the file between the check and
// its use. Only checks: a wrong owner or mode is never repaired.
import * as fs from 'node:fs';
import { dirname, resolve } from 'node:path';
import { WritError } from '../../core/errors.js';

/** The limit of Linux for links in a path: more links form a loop. */
const maxLinks = 40;
/** By the group or by all users. */
const writableByOthers = 0o022;
const sticky = 0o1000;

/** Throws if a user without authority can change this part of a path. */
export type PathRule = (part: string, stat: fs.Stats) => void;

/** User ids: root and the user of this process. */
export function ownUsers(): readonly number[] {
  return [0, process.getuid?.() ?? 0];
}

/**
 * Checks a path and each directory above it.
 * @throws WritError PATH_UNSAFE if a user other than `owners` can change one of them
 */
export function requireSafePath(path: string, owners: readonly number[] = ownUsers()): void {
  requireSafeParts(path, (part, stat) => requireSafePart(part, stat, owners));
}

/**
 * As requireSafePath, for a private directory: in one with a sticky bit other users cannot move the files of this user, but they
 * can create files that this process would take for its own.
 * @throws WritError PATH_UNSAFE
 */
export function requireOwnDirectory(path: string): void {
  requireSafePath(path);
  const stat = fs.statSync(path);
  if ((stat.mode & writableByOthers) !== 0) throw unsafe(path, stat);
}

/**
 * Applies a rule to a path, to each directory above it, and to both sides of each link.
 * @throws WritError PATH_UNSAFE for a loop of links; the error of the rule
 */
export function requireSafeParts(path: string, rule: PathRule, linksLeft = maxLinks): void {
  for (let part = resolve(path); ; part = dirname(part)) {
    const stat = fs.lstatSync(part);
    rule(part, stat);
    // Check both sides, because the owner of the link and of each directory of its target can choose the target.
    if (stat.isSymbolicLink()) {
      if (linksLeft === 0) throw linkLoop(part);
      requireSafeParts(resolve(dirname(part), fs.readlinkSync(part)), rule, linksLeft - 1);
    }
    if (part === dirname(part)) return;
  }
}

function linkLoop(path: string): WritError {
  return new WritError('PATH_UNSAFE', `${path} is one of links that lead in a circle`, { facts: { path } });
}

/** As requireSafePath; for a missing path its nearest existing parent is checked. @throws WritError PATH_UNSAFE */
export function requireSafePathOrParent(path: string, owners: readonly number[] = ownUsers()): void {
  requireSafePath(nearestExisting(resolve(path)), owners);
}

/** @returns the path, or the nearest existing directory above it */
export function nearestExisting(path: string): string {
  return fs.existsSync(path) || path === dirname(path) ? path : nearestExisting(dirname(path));
}

function requireSafePart(part: string, stat: fs.Stats, owners: readonly number[]): void {
  const isStickyOfRoot = stat.uid === 0 && (stat.mode & sticky) !== 0;
  // The mode of a link has no effect; the mode of a socket is the right to connect.
  const hasNoNames = stat.isSymbolicLink() || stat.isSocket();
  const othersCannotWrite = (stat.mode & writableByOthers) === 0 || isStickyOfRoot || hasNoNames;
  if (owners.includes(stat.uid) && othersCannotWrite) return;
  throw unsafe(part, stat);
}

function unsafe(path: string, { uid, mode }: fs.Stats): WritError {
  return new WritError('PATH_UNSAFE', `${path} can be changed by others than root and the agent`, {
    facts: { path, uid, mode: (mode & 0o7777).toString(8) },
  });
}

/**
 * Lists the users that may report on the host to a command: root, its own user, and the owner of the agent's state directory. That
 * owner counts only if no other user could have created the directory: all users can create one in /tmp.
 * @returns user ids
 */
export function trustedOwners(state: string): readonly number[] {
  try {
    const real = fs.realpathSync(state);
    const { uid } = fs.lstatSync(real);
    return isPlacedOnlyBy(uid, real) ? [...ownUsers(), uid] : ownUsers();
  } catch {
    // A directory that is missing, or that this user cannot examine, adds no trusted user.
    return ownUsers();
  }
}

function isPlacedOnlyBy(uid: number, path: string): boolean {
  for (let part = path; fs.lstatSync(part).uid === uid && !ownUsers().includes(uid); part = dirname(part)) {
    if ((fs.lstatSync(dirname(part)).mode & writableByOthers) !== 0) return false;
  }
  return true;
}
