// Reads the kernel's mount table for the directories of Writ: a rename cannot cross a mount, even one of the same file system,
// and a removal that enters a mount destroys the files of other programs.
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { unlessRefused } from '../../core/errors.js';
import { parseMountInfo } from '../../core/status/mount-table.js';

/** @returns every mount point of this mount namespace, later mounts last; none without /proc */
export function readMountPoints(table = '/proc/self/mountinfo'): readonly string[] {
  const text = unlessRefused(() => fs.readFileSync(table, 'utf8')) ?? '';
  return parseMountInfo(text).map((mount) => mount.mountPoint);
}

/** @returns the first mount point at or below the path; undefined for none. A link as the last part is not followed */
export function mountAtOrBelow(path: string, points: readonly string[]): string | undefined {
  const real = join(fs.realpathSync(dirname(path)), basename(path));
  return points.find((point) => point === real || point.startsWith(`${real}/`));
}

/** @returns the mount point that contains the path; a rename between two mount points is not possible */
export function mountOf(path: string, points: readonly string[]): string {
  const real = fs.realpathSync(path);
  const found = points.filter((point) => point === '/' || real === point || real.startsWith(`${point}/`));
  return found.reduce((longest, point) => (point.length > longest.length ? point : longest), '/');
}
