// Keeps a damaged file as a set-aside copy, so that an operator can examine it. A newer copy replaces the older one. Never
// reads the file.
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { lstatIfPresent } from '../../platform/read-file.js';

/** @returns the path of the set-aside copy of a file */
export function setAsidePath(path: string): string {
  return `${path}.damaged`;
}

/**
 * Links a damaged file to a second name; the first name stays, so that the path always exists. Moves anything else (a
 * directory, a FIFO, a device, a link). Does nothing if the path does not exist.
 * @throws WritError DISK_*
 */
export function setAside(durable: DurableFs, path: string): void {
  const aside = setAsidePath(path);
  const found = lstatIfPresent(path);
  if (found === undefined) return;
  const isFile = found.isFile();
  // The kernel does not rename a file onto a directory, nor a directory onto a file.
  if (!isFile || lstatIfPresent(aside)?.isDirectory()) durable.removeTree('recover.drop-broken', aside);
  if (isFile) durable.linkFile('recover.keep-broken', path, aside);
  else durable.rename('recover.keep-broken', path, aside);
}
