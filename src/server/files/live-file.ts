// Keeps timestamp.json, the only file that changes under its name, in memory with its ETag. Every request checks the file
// with one stat, so that a publish is visible at once. Removed bytes are never sent.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import { openServedFile } from './served-file.js';

export interface LiveBytes {
  readonly bytes: Buffer;
  /** A strong ETag: the digest of the bytes, which is the same on every mirror. */
  readonly etag: string;
}

export interface LiveFile {
  /**
   * @returns undefined when the file is missing
   * @throws WritError METADATA_MALFORMED when it is longer than maxBytes; the system's error when it is unreadable
   */
  read(): LiveBytes | undefined;
}

/**
 * @param file relative to the repository
 * @returns a reader: read() loads the file again when it changed, gives undefined without a file, and throws METADATA_MALFORMED
 *   for more than maxBytes
 */
export function createLiveFile(repository: string, file: string, maxBytes: number): LiveFile {
  const path = join(repository, file);
  let known: { readonly stamp: FileStamp; readonly live: LiveBytes } | undefined;
  return {
    read: () => {
      const stamp = stampOf(path);
      if (stamp === undefined) return undefined;
      if (known !== undefined && isSameStamp(known.stamp, stamp)) return known.live;
      const live = load(repository, file, maxBytes);
      known = live === undefined ? undefined : { stamp, live };
      return live;
    },
  };
}

/** At least one of these changes with the file or directory. ctime is included because rsync can restore size and mtime. */
export type FileStamp = Pick<fs.BigIntStats, 'mtimeNs' | 'ctimeNs' | 'size' | 'ino'>;

/**
 * @returns values that change with the file or directory; undefined where it does not exist
 * @throws the system's error, such as EACCES
 */
export function stampOf(path: string): FileStamp | undefined {
  try {
    return fs.statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    if (isSystemError(error, 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** Compares the numbers, because every request does, and texts of them would cost as much as the stat. */
export function isSameStamp(one: FileStamp | undefined, other: FileStamp | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.ctimeNs === other.ctimeNs &&
    one.mtimeNs === other.mtimeNs &&
    one.size === other.size &&
    one.ino === other.ino
  );
}

function load(repository: string, file: string, maxBytes: number): LiveBytes | undefined {
  const opened = openServedFile(repository, file);
  if (opened === undefined) return undefined;
  try {
    if (opened.length > maxBytes) {
      throw new WritError('METADATA_MALFORMED', `${file} is too long for its role`, {
        facts: { expected: maxBytes, actual: opened.length, file },
      });
    }
    const bytes = Buffer.alloc(opened.length);
    const count = fs.readSync(opened.descriptor, bytes, 0, opened.length, 0);
    const read = bytes.subarray(0, count);
    return { bytes: read, etag: `"${createHash('sha256').update(read).digest('hex')}"` };
  } finally {
    fs.closeSync(opened.descriptor);
  }
}
