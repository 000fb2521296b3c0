// A part of an open file as a source of bytes, for a comparison of two files. Reads come from one window in memory. The
// caller closes the descriptor.
import * as fs from 'node:fs';
import type { ByteSource } from '../../core/delta/byte-source.js';

const windowBytes = 262_144;

/**
 * Makes a part of an open file readable at any offset. Reads nothing yet; the caller closes the descriptor later.
 * @param part `start` and `length` in bytes
 * @param tooShort creates the error that `read` throws for a file that ends before the part does
 * @returns the source. Offset 0 is `start`; a part with start 10 answers `read(0, 4)` with the bytes 10 to 13 of the file
 */
export function fileAsSource(
  part: { readonly descriptor: number; readonly start: number; readonly length: number },
  tooShort: () => Error,
): ByteSource {
  let buffer: Buffer = Buffer.alloc(0);
  let window = buffer;
  let windowAt = 0;
  const fill = (offset: number, length: number): void => {
    if (buffer.length < length) buffer = Buffer.allocUnsafe(length);
    window = buffer.subarray(0, length);
    windowAt = offset;
    for (let read = 0; read < length; ) {
      const count = fs.readSync(part.descriptor, window, read, length - read, part.start + offset + read);
      if (count === 0) throw tooShort();
      read += count;
    }
  };
  return {
    length: part.length,
    read: (offset, length) => {
      if (offset < windowAt || offset + length > windowAt + window.length) {
        // The window begins before a small read, because files are also compared backwards.
        const from = length > windowBytes / 4 ? offset : Math.max(0, offset - windowBytes / 4);
        fill(from, Math.min(Math.max(windowBytes, length), part.length - from));
      }
      return window.subarray(offset - windowAt, offset - windowAt + length);
    },
  };
}
