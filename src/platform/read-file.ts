// Reads untrusted files and directories: a regular file within a bound, never a FIFO that blocks the reader; a directory that may be
// missing. Returns a verdict; the caller chooses the error. Writes nothing.
import * as fs from 'node:fs';
import { isSystemError } from '../core/errors.js';

export interface ReadOptions {
  readonly maxBytes: number;
  /** How to treat a symbolic link; `followed` by default. */
  readonly links?: 'followed' | 'refused';
}

export type ReadVerdict =
  | { readonly kind: 'read'; readonly bytes: Buffer }
  /** The path does not exist. */
  | { readonly kind: 'absent'; readonly why: 'ENOENT' | 'ENOTDIR' }
  /** `because` is for programs; `why` is a text: the errno name, or the broken condition. */
  | {
      readonly kind: 'refused';
      readonly because: 'not-regular' | 'too-long' | 'system';
      readonly why: string;
      readonly cause?: unknown;
    };

/** @returns the whole content of the file, or the reason why not; never throws an error of the system */
export function readSmallFile(path: string, options: ReadOptions): ReadVerdict {
  const { maxBytes } = options;
  return readRegular(path, options, (descriptor, { size }) => {
    const bytes = readUpTo(descriptor, { maxBytes: maxBytes + 1, sizeBytes: size, from: null });
    if (bytes.length <= maxBytes) return { kind: 'read', bytes };
    return { kind: 'refused', because: 'too-long', why: `it is longer than ${maxBytes} bytes` };
  });
}

/** @returns the last `maxBytes` of the file, or the reason why not; for logs. Never throws an error of the system */
export function readFileEnd(path: string, options: ReadOptions): ReadVerdict {
  const { maxBytes } = options;
  return readRegular(path, options, (descriptor, { size }) => {
    const from = Math.max(0, size - maxBytes);
    return { kind: 'read', bytes: readUpTo(descriptor, { maxBytes, sizeBytes: size - from, from }) };
  });
}

function readRegular(
  path: string,
  { links = 'followed' }: ReadOptions,
  read: (descriptor: number, stats: fs.Stats) => ReadVerdict,
): ReadVerdict {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = fs.constants;
  try {
    const flags = O_RDONLY | O_NONBLOCK | (links === 'refused' ? O_NOFOLLOW : 0);
    const descriptor = fs.openSync(path, flags);
    try {
      const stats = fs.fstatSync(descriptor);
      return stats.isFile() ? read(descriptor, stats) : notRegular;
    } finally {
      fs.closeSync(descriptor);
    }
  } catch (cause) {
    if (!isSystemError(cause)) throw cause;
    const { code = 'unknown error' } = cause;
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent', why: code };
    // The path is a socket, or a link to itself.
    if (code === 'ENXIO' || (code === 'ELOOP' && links === 'followed')) return notRegular;
    return { kind: 'refused', because: 'system', why: code, cause };
  }
}

const notRegular: ReadVerdict = { kind: 'refused', because: 'not-regular', why: 'it is not a regular file' };

const leastChunkBytes = 4096;
const maxChunkBytes = 65_536;

/**
 * Reads up to a bound. The size of the file only chooses the first buffer: a file may grow meanwhile, and files of /proc report 0. An
 * idle agent reads hundreds of small files a minute.
 * @param from position of the first byte; null: the position of the descriptor
 */
function readUpTo(
  descriptor: number,
  {
    maxBytes,
    sizeBytes,
    from,
  }: { readonly maxBytes: number; readonly sizeBytes: number; readonly from: number | null },
): Buffer {
  const chunks: Buffer[] = [];
  let chunkBytes = Math.min(Math.max(sizeBytes + 1, leastChunkBytes), maxChunkBytes);
  for (let done = 0; done < maxBytes; chunkBytes = maxChunkBytes) {
    const chunk = Buffer.allocUnsafe(Math.min(maxBytes - done, chunkBytes));
    const filled = fill(descriptor, chunk, from === null ? null : from + done);
    chunks.push(chunk.subarray(0, filled));
    done += filled;
    if (filled < chunk.length) break;
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

/** @returns how many bytes were read; fewer than the size of the buffer only at the end of the file */
function fill(descriptor: number, buffer: Buffer, from: number | null): number {
  let done = 0;
  while (done < buffer.length) {
    const position = from === null ? null : from + done;
    const count = fs.readSync(descriptor, buffer, done, buffer.length - done, position);
    if (count === 0) break;
    done += count;
  }
  return done;
}

/** @returns the stats of the path, of a link itself; undefined if it does not exist or a parent is not a directory */
export function lstatIfPresent(path: string): fs.Stats | undefined {
  try {
    return fs.lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (isSystemError(error, 'ENOTDIR') || isSystemError(error, 'ELOOP')) return undefined;
    throw error;
  }
}

/** @returns the entries of a directory, sorted; empty if it does not exist or is not a directory */
export function listEntries(path: string): fs.Dirent[] {
  const entries = orNone(() => fs.readdirSync(path, { withFileTypes: true }));
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Like listEntries, with each path in bytes, because a name that is not UTF-8 does not survive a conversion to text. */
export function listPaths(path: string): { readonly name: string; readonly path: Buffer }[] {
  const names = orNone(() => fs.readdirSync(path, { encoding: 'buffer' }));
  return names.map((name) => ({
    name: name.toString(),
    path: Buffer.concat([Buffer.from(`${path}/`), name]),
  }));
}

function orNone<T>(list: () => T[]): T[] {
  try {
    return list();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].some((code) => isSystemError(error, code))) return [];
    throw error;
  }
}
