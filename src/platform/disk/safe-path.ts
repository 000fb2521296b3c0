// Whether a name can be trusted: whoever can write to one directory on the way to it can put something else in its place
// between our look and our use. Looks only; what it finds wrong is never repaired.
import * as fs from 'node:fs';
import { dirname, resolve } from 'node:path';
import { WritError } from '../../core/errors.js';

/** As many as Linux follows: the rest is a circle. */
const maxLinks = 40;
/** By its group or by everybody. */
const writableByOthers = 0o022;
const sticky = 0o1000;

/** Throws where a part of a path can be changed by the wrong user. */
export type PathRule = (part: string, stat: fs.Stats) => void;

/** Root, and ourselves. */
export function ourOwners(): readonly number[] {
  return [0, process.getuid?.() ?? 0];
}

/**
 * Holds every part of a path to its owners: itself, and each directory above it.
 * @throws WritError PATH_UNSAFE
 */
export function requireSafePath(path: string, owners: readonly number[] = ourOwners()): void {
  requireSafeParts(path, (part, stat) => requireSafePart(part, stat, owners));
}

/**
 * As requireSafePath, for a directory that is ours alone: in one with a sticky bit others move nothing of ours, but make
 * names that we would take for our own.
 * @throws WritError PATH_UNSAFE
 */
export function requireOwnDirectory(path: string): void {
  requireSafePath(path);
  const stat = fs.statSync(path);
  if ((stat.mode & writableByOthers) !== 0) throw unsafe(path, stat);
}

/** Applies a rule to a path, each directory above it, and both sides of each link. @throws WritError PATH_UNSAFE, and what the rule throws */
export function requireSafeParts(path: string, rule: PathRule, linksLeft = maxLinks): void {
  for (let part = resolve(path); ; part = dirname(part)) {
    const stat = fs.lstatSync(part);
    rule(part, stat);
    // Both sides of a link: who owns the link, or a directory on the way to its target, chooses the target.
    if (stat.isSymbolicLink()) {
      if (linksLeft === 0) throw inCircle(part);
      requireSafeParts(resolve(dirname(part), fs.readlinkSync(part)), rule, linksLeft - 1);
    }
    if (part === dirname(part)) return;
  }
}

function inCircle(path: string): WritError {
  return new WritError('PATH_UNSAFE', `${path} is one of links that lead in a circle`, { facts: { path } });
}

/** As requireSafePath, for a place that may not be there yet: then it is its parent's to make. @throws WritError PATH_UNSAFE */
export function requireSafePlace(path: string, owners: readonly number[] = ourOwners()): void {
  requireSafePath(nearestThere(resolve(path)), owners);
}

/** @returns the path, or the nearest directory above it that is there */
export function nearestThere(path: string): string {
  return fs.existsSync(path) || path === dirname(path) ? path : nearestThere(dirname(path));
}

function requireSafePart(part: string, stat: fs.Stats, owners: readonly number[]): void {
  const isStickyOfRoot = stat.uid === 0 && (stat.mode & sticky) !== 0;
  // The mode of a link says nothing, that of a socket who may connect.
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
 * Whom a command believes about the host: root, itself, and who owns the agent's state directory, if nobody else could have
 * put that there: anybody can make a directory in /tmp.
 */
export function agentOwners(state: string): readonly number[] {
  try {
    const real = fs.realpathSync(state);
    const { uid } = fs.lstatSync(real);
    return isPutBy(uid, real) ? [...ourOwners(), uid] : ourOwners();
  } catch {
    // What this user cannot look at, or is not there, speaks for nobody.
    return ourOwners();
  }
}

function isPutBy(uid: number, path: string): boolean {
  for (let part = path; fs.lstatSync(part).uid === uid && !ourOwners().includes(uid); part = dirname(part)) {
    if ((fs.lstatSync(dirname(part)).mode & writableByOthers) !== 0) return false;
  }
  return true;
}
