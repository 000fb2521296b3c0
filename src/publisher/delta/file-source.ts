// A part of an open file as a source of bytes, for whoever compares two of them: small reads come out of one window, large ones
// from the file. Owns no descriptor; what it has given away is never written over.
import * as fs from 'node:fs';
import type { ByteSource } from '../../core/delta/byte-source.js';

const windowBytes = 262_144;

/** @param tooShort what is thrown where the file ends before the part does */
export function fileAsSource(
  part: { readonly descriptor: number; readonly start: number; readonly length: number },
  tooShort: () => Error,
): ByteSource {
  let window: Buffer = Buffer.alloc(0);
  let windowAt = 0;
  const readExactly = (offset: number, length: number): Buffer => {
    const bytes = Buffer.allocUnsafe(length);
    for (let read = 0; read < length; ) {
      const count = fs.readSync(part.descriptor, bytes, read, length - read, part.start + offset + read);
      if (count === 0) throw tooShort();
      read += count;
    }
    return bytes;
  };
  return {
    length: part.length,
    read: (offset, length) => {
      if (length > windowBytes / 4) return readExactly(offset, length);
      if (offset < windowAt || offset + length > windowAt + window.length) {
        // Around it: files are compared backwards as well.
        windowAt = Math.max(0, offset - windowBytes / 4);
        window = readExactly(windowAt, Math.min(windowBytes, part.length - windowAt));
      }
      return window.subarray(offset - windowAt, offset - windowAt + length);
    },
  };
}
