// Files of a tree that a new one is made of. The tree is in use, and may be anything by now: what is opened is a regular file of
// the size of its row, no more is believed of it, and whoever makes something of it digests that. Reads only.
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { DeltaRelease } from '../../core/delta/delta-format.js';
import { isSystemError, WritError } from '../../core/errors.js';
import type { ManifestFile } from '../../core/release/manifest.js';
import { diskError, type OpenFile } from '../../platform/disk/durable-fs.js';

/** What a delta is applied to. */
export interface BaseTree extends DeltaRelease {
  readonly treePath: string;
}

/** @returns the open file; the caller closes it. @throws WritError DELTA_MISMATCH, TOO_MANY_FILES */
export function openBaseFile(treePath: string, file: ManifestFile): OpenFile {
  const path = join(treePath, file.path);
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  // O_NONBLOCK: a FIFO put in place of the file would hold us for ever.
  const descriptor = reading(path, () => fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  const stats = fs.fstatSync(descriptor);
  if (stats.isFile() && stats.size === file.sizeBytes) return { descriptor, path };
  fs.closeSync(descriptor);
  throw mismatch(path, stats.isFile() ? 'has a different size' : 'is not a regular file');
}

/** Fills the buffer. @throws WritError DELTA_MISMATCH for a file that ends before that, or that the disk cannot give */
export function readBase({ descriptor, path }: OpenFile, buffer: Buffer, offset: number): void {
  for (let done = 0; done < buffer.length; ) {
    const count = reading(path, () =>
      fs.readSync(descriptor, buffer, done, buffer.length - done, offset + done),
    );
    if (count === 0) throw mismatch(path, 'ends too early');
    done += count;
  }
}

/** @returns the error for what was made of this file and is not what was signed */
export function mismatch(path: string, what: string, cause?: unknown): WritError {
  return new WritError('DELTA_MISMATCH', `${path} ${what}`, { facts: { path }, cause });
}

function reading<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!isSystemError(error)) throw error;
    if (error.code === 'EMFILE' || error.code === 'ENFILE')
      throw diskError(error, { op: 'stage.base', path });
    throw mismatch(path, `cannot be read: ${error.code}`, error);
  }
}
