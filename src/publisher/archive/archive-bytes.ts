// Bytes of archives on the disk: a new file that is written chunk by chunk, and the digest of one that is there. Owns no
// format; what a chunk is, and when a file counts, is its callers'.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import type { More } from '../../core/work-report.js';
import { diskError } from '../../platform/disk/durable-fs.js';

/**
 * @param op label of the operation, for errors
 * @returns a file that was not there; the caller closes its descriptor
 * @throws WritError DISK_*, also from write
 */
export function openNewFile(path: string, op: string) {
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

/** @returns SHA-256 in hex */
export async function digestOfFile(path: string, more?: More): Promise<string> {
  const digest = createHash('sha256');
  for await (const chunk of fs.createReadStream(path)) {
    digest.update(chunk as Buffer);
    more?.((chunk as Buffer).length);
  }
  return digest.digest('hex');
}
