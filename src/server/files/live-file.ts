// The one file that changes under its name, timestamp.json, kept in memory with its ETag. Every request looks
// at the file (one stat), so that a publish is visible at once. Never answers with bytes that are gone.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import { openServedFile } from './served-file.js';

export interface LiveBytes {
  readonly bytes: Buffer;
  /** Strong: the digest of the bytes, so that it is the same on every mirror. */
  readonly etag: string;
}

export interface LiveFile {
  /**
   * @returns undefined when there is no such file
   * @throws WritError METADATA_MALFORMED when it is longer than maxBytes; the system's error when unreadable
   */
  read(): LiveBytes | undefined;
}

/** @param file relative to the repository. */
export function createLiveFile(repository: string, file: string, maxBytes: number): LiveFile {
  const path = join(repository, file);
  let known: { readonly stamp: Stamp; readonly live: LiveBytes } | undefined;
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

/** Of these one changes whenever the file or directory does; ctime is in it because rsync can restore size and mtime. */
export type Stamp = Pick<fs.BigIntStats, 'mtimeNs' | 'ctimeNs' | 'size' | 'ino'>;

export function stampOf(path: string): Stamp | undefined {
  try {
    return fs.statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    if (isSystemError(error, 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** Compared as they are: every request does, and texts of them would cost as much as the look at the file. */
export function isSameStamp(one: Stamp | undefined, other: Stamp | undefined): boolean {
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
