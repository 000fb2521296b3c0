// How much of a host's disk the files of delegated roles may take together. Owns which of them make room for a new one;
// never the files of the top-level roles, nor what a file is worth.
import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { unlessRefused } from '../../core/errors.js';
import { topLevelRoles } from '../../core/tuf/tuf-metadata.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';

/** A hundred megabytes: whoever may name new roles with each refresh would otherwise fill the disk in a day. */
export const maxKeptBytes = 100_000_000;

const topLevelFiles: readonly string[] = topLevelRoles.map((role) => `${role}.json`);

/**
 * Removes files that were written longest ago until there is room. One that is needed again is fetched again, and what
 * is active is still vouched for by the copy in its record.
 * @param name of the file that needs room, in the directory
 */
export function removeOldestFiles(fs: DurableFs, directory: string, name: string, bytes: number): void {
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
