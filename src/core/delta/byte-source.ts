// Random access to bytes, as of a file that is larger than memory, and the comparison of two sources. Pure: the caller reads the
// file.

export interface ByteSource {
  readonly length: number;
  /** @returns exactly these bytes; the buffer is valid until the next read of this source */
  read(offset: number, length: number): Buffer;
}

/** A source for bytes in memory. */
export function bytesAsSource(bytes: Buffer): ByteSource {
  return { length: bytes.length, read: (offset, length) => bytes.subarray(offset, offset + length) };
}

/** A position in a source. */
export interface Place {
  readonly source: ByteSource;
  readonly at: number;
}

const firstBlockBytes = 64;
const maxBlockBytes = 262_144;

/** @returns the number of equal bytes after both positions, at most `max` */
export function commonAhead(a: Place, b: Place, max: number): number {
  let same = 0;
  for (let block = firstBlockBytes; same < max; block = Math.min(block * 4, maxBlockBytes)) {
    const length = Math.min(block, max - same);
    const left = a.source.read(a.at + same, length);
    const right = b.source.read(b.at + same, length);
    if (!left.equals(right)) return same + firstDifference(left, right);
    same += length;
  }
  return max;
}

/** @returns the number of equal bytes before both positions, at most `max` */
export function commonBehind(a: Place, b: Place, max: number): number {
  let same = 0;
  for (let block = firstBlockBytes; same < max; block = Math.min(block * 4, maxBlockBytes)) {
    const length = Math.min(block, max - same);
    const left = a.source.read(a.at - same - length, length);
    const right = b.source.read(b.at - same - length, length);
    if (!left.equals(right)) return same + length - 1 - lastDifference(left, right);
    same += length;
  }
  return max;
}

function firstDifference(left: Buffer, right: Buffer): number {
  let at = 0;
  while (left[at] === right[at]) at += 1;
  return at;
}

function lastDifference(left: Buffer, right: Buffer): number {
  let at = left.length - 1;
  while (left[at] === right[at]) at -= 1;
  return at;
}
