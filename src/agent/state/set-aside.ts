// What becomes of something damaged in the place of one of our own files: it is kept beside, under a second name, for who
// wants to know what became of it. A newer one takes the place of an older one. Reads nothing of it.
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { lookAt } from '../../platform/read-file.js';

/** Where it is kept. */
export function brokenPath(path: string): string {
  return `${path}.damaged`;
}

/**
 * Gives a damaged file its second name; the first one stays, for there is no moment without the file. What is no file (a
 * directory, a FIFO, a device, a link) is moved there.
 * @throws WritError DISK_*
 */
export function keepBroken(durable: DurableFs, path: string): void {
  const aside = brokenPath(path);
  const found = lookAt(path);
  if (found === undefined) return;
  const isFile = found.isFile();
  // No file is renamed onto a directory, nor a directory onto anything.
  if (!isFile || lookAt(aside)?.isDirectory()) durable.removeTree('recover.drop-broken', aside);
  if (isFile) durable.linkFile('recover.keep-broken', path, aside);
  else durable.rename('recover.keep-broken', path, aside);
}
