// Reads what somebody else may have put there: a regular file, bounded, and never a FIFO that hangs its reader for ever; a
// directory that may be none. Says what it found; which error that is, is the caller's to know. Writes nothing.
import * as fs from 'node:fs';
import { isSystemError } from '../core/errors.js';

export interface ReadOptions {
  readonly maxBytes: number;
  /** A symbolic link in place of the file; `followed` by default. */
  readonly links?: 'followed' | 'refused';
}

export type ReadVerdict =
  | { readonly kind: 'read'; readonly bytes: Buffer }
  /** Nothing has this name. */
  | { readonly kind: 'absent'; readonly why: 'ENOENT' | 'ENOTDIR' }
  /** `because` for programs; `why` for people: the errno name, or what it is not. */
  | {
      readonly kind: 'refused';
      readonly because: 'not-regular' | 'too-long' | 'system';
      readonly why: string;
      readonly cause?: unknown;
    };

/** @returns the content of the file, whole, or why not; never throws an error of the system */
export function readSmallFile(path: string, options: ReadOptions): ReadVerdict {
  const { maxBytes } = options;
  return readRegular(path, options, (descriptor, { size }) => {
    const bytes = readUpTo(descriptor, { maxBytes: maxBytes + 1, sizeBytes: size, from: null });
    if (bytes.length <= maxBytes) return { kind: 'read', bytes };
    return { kind: 'refused', because: 'too-long', why: `it is longer than ${maxBytes} bytes` };
  });
}

/** @returns the last `maxBytes` of the file, or all of a shorter one, or why not; for logs, of which the end is news */
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
    // A socket; a link to itself.
    if (code === 'ENXIO' || (code === 'ELOOP' && links === 'followed')) return notRegular;
    return { kind: 'refused', because: 'system', why: code, cause };
  }
}

const notRegular: ReadVerdict = { kind: 'refused', because: 'not-regular', why: 'it is not a regular file' };

const leastChunkBytes = 4096;
const maxChunkBytes = 65_536;

/**
 * The size is not believed: a file may grow while it is read, and those of /proc have none. It only sizes the first chunk: an
 * agent at rest reads hundreds of small files in a minute.
 * @param from position of the first byte; null from where the descriptor is
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

/** @returns how many bytes were read: fewer than the buffer takes at the end of the file alone */
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

/** @returns what has this name, a link itself included; undefined for nothing, also where a part of the path is not a directory */
export function lstatIfPresent(path: string): fs.Stats | undefined {
  try {
    return fs.lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (isSystemError(error, 'ENOTDIR') || isSystemError(error, 'ELOOP')) return undefined;
    throw error;
  }
}

/** @returns what is in a directory, sorted; nothing where there is none, or something else in its place */
export function listEntries(path: string): fs.Dirent[] {
  const entries = orNone(() => fs.readdirSync(path, { withFileTypes: true }));
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** As listEntries, by the bytes of the whole path: a name that is not UTF-8 read as text is the name of nobody. */
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
