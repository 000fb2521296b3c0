// Creates the directories of a host, and refuses paths that another user could change.
// Runs before the state directory is read. Never repairs an unsafe path.
import * as fs from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { WritError } from '../../core/errors.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { mountOf, readMountPoints } from '../../platform/disk/mount-points.js';
import { requireOwnDirectory, requireSafePathOrParent } from '../../platform/disk/safe-path.js';
import { createPolicyDirectories, listDirectories } from '../generations/generations.js';
import type { HostPaths } from '../state/paths.js';

/**
 * Creates missing directories with exact modes, and checks that no other user can change their entries.
 * @throws WritError PATH_UNSAFE, PATH_CROSS_DEVICE, DISK_*
 */
export function prepareHost(paths: HostPaths, durable: DurableFs): void {
  // Before anything is created: root would create it where a link of another user leads.
  for (const path of [paths.state, paths.policy, paths.run]) requireSafePathOrParent(path);
  ensureParents(durable, paths.state);
  durable.ensureDirectory('prepare.state', paths.state, 0o711);
  for (const path of [paths.trust, paths.staging, paths.partials]) {
    durable.ensureDirectory('prepare.private', path, 0o700);
  }
  ensureParents(durable, paths.policy);
  createPolicyDirectories(paths, durable);
  ensureParents(durable, paths.run);
  durable.ensureDirectory('prepare.run', paths.run, 0o755);
  const { state, trust, staging, partials, archives, policy, generations, bundles, run } = paths;
  for (const path of [state, trust, staging, partials, archives, policy, generations, bundles, run])
    requireOwnDirectory(path);
  // Attack: a user who can rename entries in one of these directories could put another tree behind `current`.
  for (const path of [...directoriesIn(bundles), ...directoriesIn(archives)]) requireOwnDirectory(path);
  // Both are created at their first use. `fleet` contains the key that signs the host's reports.
  for (const path of [paths.fleet, join(trust, 'roots')]) if (fs.existsSync(path)) requireOwnDirectory(path);
  // Attack: a user who can replace the control socket could answer the commands in place of the agent.
  requireSafePathOrParent(dirname(paths.socket));
  requireSameDevice(paths);
}

function ensureParents(durable: DurableFs, path: string): void {
  const parent = dirname(resolve(path));
  if (fs.existsSync(parent)) return;
  ensureParents(durable, parent);
  durable.ensureDirectory('prepare.parent', parent, 0o755);
}

/**
 * Requires that staging and policy are on the same mount. A rename cannot cross a mount, even one of the same file system,
 * and a swap would find that out too late.
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
