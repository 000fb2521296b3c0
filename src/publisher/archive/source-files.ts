// Opens files of SOURCE below the listed directory without following a link. Defines the errors of a source that cannot be
// read, or that changed.
import * as fs from 'node:fs';
import { isSystemError, WritError } from '../../core/errors.js';
import { type DirectoryIdentity, openDirectory, openFileBelow } from '../../platform/disk/open-below.js';

/** @returns SOURCE as an open directory; the caller closes it. @throws WritError SOURCE_REFUSED */
export function openSource(source: string) {
  try {
    return openDirectory(source);
  } catch (error) {
    throw unreadable(source, error);
  }
}

/**
 * Opens one file of SOURCE. Does not block on a FIFO. Attack: another user with write permission to SOURCE replaces the
 * file, or a directory above it, by a link to a file that only the publisher can read.
 * @throws WritError SOURCE_REFUSED
 */
export function openSourceFile(place: DirectoryIdentity, path: string) {
  const descriptor = openListed(place, path);
  const status = fs.fstatSync(descriptor);
  const { mode, size: sizeBytes, nlink } = status;
  if (status.isFile()) return { descriptor, executable: (mode & 0o100) !== 0, sizeBytes, mode, links: nlink };
  fs.closeSync(descriptor);
  throw changedSource(path);
}

function openListed(place: DirectoryIdentity, path: string): number {
  let descriptor: number | undefined;
  try {
    descriptor = openFileBelow(place, path);
  } catch (error) {
    // The file and its directories existed when they were listed.
    if (['ELOOP', 'ENOTDIR', 'ENOENT', 'ENXIO'].some((code) => isSystemError(error, code)))
      throw changedSource(path);
    throw unreadable(`${place.path}/${path}`, error);
  }
  if (descriptor === undefined) throw changedSource(place.path);
  return descriptor;
}

/** @returns the error for content that differs between two readings, because a release must be a snapshot of SOURCE */
export function changedSource(path: string): WritError {
  return new WritError('SOURCE_REFUSED', `${path} changed while it was read`, {
    facts: { path },
    hint: 'Publish a directory that does not change.',
  });
}

/** @returns SOURCE_REFUSED for a system error; other errors unchanged */
export function unreadable(path: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  const why =
    error.code === 'ENOTDIR' ? 'is a file: a release is a directory' : `cannot be read: ${error.code}`;
  return new WritError('SOURCE_REFUSED', `${path} ${why}`, {
    facts: { path, errno: error.code },
    hint: 'Give a readable directory without links.',
    cause: error,
  });
}
