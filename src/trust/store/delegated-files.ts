// The bound on the disk space of the files of delegated roles, and which files are removed for a new one. The files of top-level
// roles are never removed.
import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { unlessRefused } from '../../core/errors.js';
import { topLevelRoles } from '../../core/tuf/tuf-metadata.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';

/**
 * Bounds the disk space, because the holder of a key could otherwise delegate to new roles at each refresh and fill the disk in a
 * day.
 */
export const maxKeptBytes = 100_000_000;

const topLevelFiles: readonly string[] = topLevelRoles.map((role) => `${role}.json`);

/**
 * Removes the oldest files of delegated roles until they and the new file have at most maxKeptBytes (100 MB). Top-level files and
 * the file of this name stay. A removed file is fetched again when needed; the record of an active release has a copy that proves
 * it.
 * @param name of the new file in the directory
 */
export function makeSpaceForDelegated(fs: DurableFs, directory: string, name: string, bytes: number): void {
  let leftBytes = maxKeptBytes - bytes;
  for (const { path, size } of newestFirst(directory, name)) {
    leftBytes -= size;
    if (leftBytes < 0) fs.removeFile('trust.delegated-room', path);
  }
}

function newestFirst(directory: string, except: string): { readonly path: string; readonly size: number }[] {
  const names = unlessRefused(() => readdirSync(directory)) ?? [];
  return names
    .filter((name) => name.endsWith('.json') && name !== except && !topLevelFiles.includes(name))
    .flatMap((name): [string, Stats][] => {
      const path = join(directory, name);
      const stats = lstatSync(path, { throwIfNoEntry: false });
      return stats?.isFile() ? [[path, stats]] : [];
    })
    .sort(([, a], [, b]) => b.mtimeMs - a.mtimeMs)
    .map(([path, { size }]) => ({ path, size }));
}
