// Makes the directories of a host, and refuses a place where somebody else could change them.
// Runs before anything is read from the state directory; never repairs what it finds wrong.
import * as fs from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { WritError } from '../../core/errors.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { mountOf, readMountPoints } from '../../platform/disk/mount-points.js';
import { requireOwnDirectory, requireSafePlace } from '../../platform/disk/safe-path.js';
import { listDirectories, makePlaces } from '../generations/generations.js';
import type { HostPaths } from '../state/paths.js';

/**
 * Creates what is missing, with exact modes, and checks that nobody else can change what is in them.
 * @throws WritError PATH_UNSAFE, PATH_CROSS_DEVICE, DISK_*
 */
export function prepareHost(paths: HostPaths, durable: DurableFs): void {
  // Before anything is created: root would create it where a link of another user leads.
  for (const path of [paths.state, paths.policy, paths.run]) requireSafePlace(path);
  ensureParents(durable, paths.state);
  durable.ensureDirectory('prepare.state', paths.state, 0o711);
  for (const path of [paths.trust, paths.staging, paths.partials]) {
    durable.ensureDirectory('prepare.private', path, 0o700);
  }
  ensureParents(durable, paths.policy);
  makePlaces(paths, durable);
  ensureParents(durable, paths.run);
  durable.ensureDirectory('prepare.run', paths.run, 0o755);
  const { state, trust, staging, partials, archives, policy, generations, bundles, run } = paths;
  for (const path of [state, trust, staging, partials, archives, policy, generations, bundles, run])
    requireOwnDirectory(path);
  // Who can rename in one of these puts a tree of his own behind `current`.
  for (const path of [...directoriesIn(bundles), ...directoriesIn(archives)]) requireOwnDirectory(path);
  // They are created when they are needed first. The key of the host's reports is in one of them.
  for (const path of [paths.fleet, join(trust, 'roots')]) if (fs.existsSync(path)) requireOwnDirectory(path);
  // Who asks there believes what is answered.
  requireSafePlace(dirname(paths.socket));
  requireSameDevice(paths);
}

function ensureParents(durable: DurableFs, path: string): void {
  const parent = dirname(resolve(path));
  if (fs.existsSync(parent)) return;
  ensureParents(durable, parent);
  durable.ensureDirectory('prepare.parent', parent, 0o755);
}

/**
 * No rename crosses a mount, be it of the same file system: a swap would fail when it is too late to say so.
 * @throws WritError PATH_CROSS_DEVICE
 */
export function requireSameDevice({ staging, partials, archives, generations, bundles }: HostPaths): void {
  const points = readMountPoints();
  const from = { device: fs.statSync(staging).dev, mount: mountOf(staging, points) };
  for (const place of [
    partials,
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
