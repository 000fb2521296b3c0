// The kernel's table of mounts, as far as it concerns directories of ours: a rename does not cross a mount, also one
// of the same file system, and a removal that goes into one destroys what is somebody else's. Owns reading it.
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { unlessRefused } from '../../core/errors.js';
import { parseMountInfo } from '../../core/status/mount-table.js';

/** @returns every mount point of this mount namespace, the later ones are on top; none where /proc is not there */
export function readMountPoints(table = '/proc/self/mountinfo'): readonly string[] {
  const text = unlessRefused(() => fs.readFileSync(table, 'utf8')) ?? '';
  return parseMountInfo(text).map((mount) => mount.mountPoint);
}

/** @returns the first mount point at or below the path, whose last part is no link that is followed */
export function mountAtOrBelow(path: string, points: readonly string[]): string | undefined {
  const real = join(fs.realpathSync(dirname(path)), basename(path));
  return points.find((point) => point === real || point.startsWith(`${real}/`));
}

/** @returns the mount point that the path is in; two paths with different ones cannot be renamed into each other */
export function mountOf(path: string, points: readonly string[]): string {
  const real = fs.realpathSync(path);
  const found = points.filter((point) => point === '/' || real === point || real.startsWith(`${point}/`));
  return found.reduce((longest, point) => (point.length > longest.length ? point : longest), '/');
}
