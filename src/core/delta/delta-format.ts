// The format of a delta, version 1 (docs/adr/0034): magic, numbers, instructions, and which files of a release it contains.
// delta-reader.ts reads it, delta-writer.ts writes it. Each number and instruction has exactly one encoding, so that no two readers
// interpret one delta differently.
import { WritError } from '../errors.js';
import type { Manifest, ManifestFile } from '../release/manifest.js';

/** The first bytes after decompression. */
export const deltaMagic: Buffer = Buffer.from('writ-delta 1\n');

/** The parts of a release that a delta depends on. */
export interface DeltaRelease {
  readonly manifest: Manifest;
  /** Its canonical bytes; their digest is signed. */
  readonly manifestBytes: Buffer;
}

/**
 * A shorter copy saves nothing and costs the reader a read. With this bound, and because two inserts never follow each other,
 * applying a delta is never more work than the bytes that it produces.
 */
export const minCopyBytes = 32;

/** Numbers are below 2 ** 53, with seven bits in each byte. */
const maxNumberBytes = 8;

export type Instruction =
  /** Bytes of the base file. */
  | { readonly kind: 'copy'; readonly offset: number; readonly length: number }
  /** Bytes of the new file, which follow the instruction. */
  | { readonly kind: 'insert'; readonly offset: number; readonly length: number };

/**
 * @param copyEnd end of the previous copy in the base, in the same section
 * @returns an instruction, without the bytes of an insert
 */
export function encodeInstruction({ kind, offset, length }: Instruction, copyEnd: number): Buffer {
  if (kind === 'insert') return encodeNumber(length * 2);
  const step = offset - copyEnd;
  return Buffer.concat([encodeNumber(length * 2 + 1), encodeNumber(step < 0 ? -step * 2 - 1 : step * 2)]);
}

/** @returns the signed step that encodeInstruction wrote as this number */
export function stepOf(number: number): number {
  return number % 2 === 1 ? -(number + 1) / 2 : number / 2;
}

/** Unsigned LEB128 in the fewest bytes. Uses arithmetic, because a shift operates on 32 bits. */
export function encodeNumber(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  bytes.push(left);
  return Buffer.from(bytes);
}

/** Decodes numbers byte by byte. */
export class NumberReader {
  #value = 0;
  #count = 0;

  /**
   * @returns the number at its last byte; undefined before it
   * @throws WritError DELTA_MALFORMED for a number that is too large or not in its shortest form
   */
  take(byte: number): number | undefined {
    this.#value += (byte % 128) * 128 ** this.#count;
    this.#count += 1;
    if (byte >= 128) {
      if (this.#count === maxNumberBytes) throw malformedDelta('a number is too long');
      return undefined;
    }
    if (byte === 0 && this.#count > 1) throw malformedDelta('a number is not in its shortest form');
    const value = this.#value;
    if (!Number.isSafeInteger(value)) throw malformedDelta('a number is too large');
    this.#value = 0;
    this.#count = 0;
    return value;
  }
}

/** @returns the files that a delta contains, in the order of the manifest: those with a content that the base does not have */
export function newContents(base: Manifest, next: Manifest): ManifestFile[] {
  const known = new Set(base.files.map(({ digest }) => digest));
  return next.files.filter(({ digest }) => !known.has(digest));
}

/**
 * @param what the rule that the delta breaks, as a clause
 * @returns the error DELTA_MALFORMED
 */
export function malformedDelta(what: string, facts: Record<string, unknown> = {}): WritError {
  return new WritError('DELTA_MALFORMED', `the delta is refused: ${what}`, { facts });
}
