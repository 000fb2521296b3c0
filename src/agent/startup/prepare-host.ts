// Makes the directories of a host, and refuses a place where somebody else could change them.
// Runs before anything is read from the state directory; never repairs what it finds wrong.
import * as fs from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { WritError } from '../../core/errors.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { mountOf, readMountPoints } from '../../platform/disk/mount-points.js';
import { listDirectories } from '../generations/generations.js';
import type { HostPaths } from '../state/paths.js';

/** By its group or by everybody. */
const writableByOthers = 0o022;
const sticky = 0o1000;

/**
 * Creates what is missing, with exact modes, and checks that staging and policy can be swapped safely.
 * @throws WritError PATH_UNSAFE, PATH_CROSS_DEVICE, DISK_*
 */
export function prepareHost(paths: HostPaths, durable: DurableFs): void {
  ensureParents(durable, paths.state);
  durable.ensureDirectory('prepare.state', paths.state, 0o711);
  for (const path of [paths.trust, paths.staging, paths.archives]) {
    durable.ensureDirectory('prepare.private', path, 0o700);
  }
  ensureParents(durable, paths.policy);
  for (const path of [paths.policy, paths.generations, paths.bundles]) {
    durable.ensureDirectory('prepare.public', path, 0o755);
  }
  ensureParents(durable, paths.run);
  durable.ensureDirectory('prepare.run', paths.run, 0o755);
  for (const path of [paths.state, paths.staging, paths.policy, paths.generations, paths.bundles]) {
    requireSafePath(path);
  }
  requireSameDevice(paths);
}

function ensureParents(durable: DurableFs, path: string): void {
  const parent = dirname(resolve(path));
  if (fs.existsSync(parent)) return;
  ensureParents(durable, parent);
  durable.ensureDirectory('prepare.parent', parent, 0o755);
}

/**
 * Root must not rename and delete inside a directory that a worker owns: whoever can write to one component
 * can put another tree in its place between our check and our use.
 */
export function requireSafePath(path: string): void {
  for (let part = resolve(path); ; part = dirname(part)) {
    const stat = fs.lstatSync(part);
    requireSafePart(part, stat);
    // Both sides of a link: who owns the link, or a directory on the way to its target, chooses the target.
    if (stat.isSymbolicLink()) requireSafePath(resolve(dirname(part), fs.readlinkSync(part)));
    if (part === dirname(part)) return;
  }
}

function requireSafePart(part: string, stat: fs.Stats): void {
  const ownerIsSafe = stat.uid === 0 || stat.uid === process.getuid?.();
  const isStickyOfRoot = stat.uid === 0 && (stat.mode & sticky) !== 0;
  const othersCannotWrite = (stat.mode & writableByOthers) === 0 || isStickyOfRoot || stat.isSymbolicLink();
  if (ownerIsSafe && othersCannotWrite) return;
  throw new WritError('PATH_UNSAFE', `${part} can be changed by others than root and the agent`, {
    facts: { path: part, uid: stat.uid, mode: (stat.mode & 0o7777).toString(8) },
  });
}

/**
 * No rename crosses a mount, be it of the same file system: a swap would fail when it is too late to say so.
 * @throws WritError PATH_CROSS_DEVICE
 */
export function requireSameDevice({ staging, archives, generations, bundles }: HostPaths): void {
  const points = readMountPoints();
  const from = { device: fs.statSync(staging).dev, mount: mountOf(staging, points) };
  for (const place of [
    archives,
    generations,
    bundles,
    ...directoriesIn(archives),
    ...directoriesIn(bundles),
  ]) {
    if (fs.statSync(place).dev === from.device && mountOf(place, points) === from.mount) continue;
    const message = `${staging} and ${place} are on different file systems or mounts`;
    throw new WritError('PATH_CROSS_DEVICE', message, { facts: { staging, policy: place } });
  }
}

function directoriesIn(path: string): string[] {
  return listDirectories(path).map((name) => join(path, name));
}
