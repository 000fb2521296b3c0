// Bytes of archives on disk: a new file that is written in chunks, and the digest of an existing file. Knows no format; the
// callers decide on the content and the validity of a file.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import type { More } from '../../core/work-report.js';
import { diskError } from '../../platform/disk/durable-fs.js';

/**
 * @param op label of the operation, for errors
 * @returns a new file; the caller closes its descriptor
 * @throws WritError DISK_* where the path exists or cannot be written; `write` throws DISK_* too
 */
export function createArchiveFile(path: string, op: string) {
  const disk = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      throw diskError(error, { op, path });
    }
  };
  const descriptor = disk(() => fs.openSync(path, 'wx+', 0o644));
  const write = (chunk: Buffer): void => {
    for (let written = 0; written < chunk.length; ) written += fs.writeSync(descriptor, chunk, written);
  };
  return { descriptor, write: (chunk: Buffer): void => disk(() => write(chunk)) };
}

/**
 * @param more called with the bytes of each part that was read
 * @returns SHA-256 in hex
 * @throws the system's error
 */
export async function digestOfFile(path: string, more?: More): Promise<string> {
  const digest = createHash('sha256');
  for await (const chunk of fs.createReadStream(path)) {
    digest.update(chunk as Buffer);
    more?.((chunk as Buffer).length);
  }
  return digest.digest('hex');
}
