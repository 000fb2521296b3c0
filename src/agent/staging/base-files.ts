// Reads the files of the active tree from which a delta makes a new one. The tree is in use and can be damaged, so each file must be
// regular and have the size in the manifest. Its bytes are not trusted: the caller verifies the digest of the result.
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { DeltaRelease } from '../../core/delta/delta-format.js';
import { isSystemError, WritError } from '../../core/errors.js';
import type { ManifestFile } from '../../core/release/manifest.js';
import { diskError, type OpenFile } from '../../platform/disk/durable-fs.js';

/** The tree that a delta is applied to. */
export interface BaseTree extends DeltaRelease {
  readonly treePath: string;
}

/** @returns the open file; the caller closes it. @throws WritError DELTA_MISMATCH, TOO_MANY_FILES */
export function openBaseFile(treePath: string, file: ManifestFile): OpenFile {
  const path = join(treePath, file.path);
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  // O_NONBLOCK, because a FIFO in place of the file would block this process.
  const descriptor = convertReadErrors(path, () => fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  const stats = fs.fstatSync(descriptor);
  if (stats.isFile() && stats.size === file.sizeBytes) return { descriptor, path };
  fs.closeSync(descriptor);
  throw createDeltaMismatch(path, stats.isFile() ? 'has a different size' : 'is not a regular file');
}

/** Fills the buffer. @throws WritError DELTA_MISMATCH if the file ends before, or cannot be read */
export function readBaseFile({ descriptor, path }: OpenFile, buffer: Buffer, offset: number): void {
  for (let done = 0; done < buffer.length; ) {
    const count = convertReadErrors(path, () =>
      fs.readSync(descriptor, buffer, done, buffer.length - done, offset + done),
    );
    if (count === 0) throw createDeltaMismatch(path, 'ends too early');
    done += count;
  }
}

/**
 * @param what how the file differs, as the end of a sentence that begins with its path
 * @returns the error DELTA_MISMATCH for a base file, or a file made of it, that does not match what was signed
 */
export function createDeltaMismatch(path: string, what: string, cause?: unknown): WritError {
  return new WritError('DELTA_MISMATCH', `${path} ${what}`, { facts: { path }, cause });
}

function convertReadErrors<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!isSystemError(error)) throw error;
    if (error.code === 'EMFILE' || error.code === 'ENFILE')
      throw diskError(error, { op: 'stage.base', path });
    throw createDeltaMismatch(path, `cannot be read: ${error.code}`, error);
  }
}
