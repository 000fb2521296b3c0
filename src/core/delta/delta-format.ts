// The words of a delta, version 1 (docs/adr/0034): magic, numbers, instructions, and which files of a release one carries.
// Owns the format alone; delta-reader reads it, delta-writer makes it. What has two forms would be read in two ways: each
// number and each instruction has one.
import { WritError } from '../errors.js';
import type { Manifest, ManifestFile } from '../release/manifest.js';

/** First bytes of what the brotli stream holds. */
export const deltaMagic: Buffer = Buffer.from('writ-delta 1\n');

/** A release as far as a delta needs it. */
export interface DeltaRelease {
  readonly manifest: Manifest;
  /** Its one form, of which the digest is signed. */
  readonly manifestBytes: Buffer;
}

/**
 * A shorter copy saves nothing, and costs whoever applies it a read: with it, and with no insert behind an insert, what a delta
 * asks for is never more work than the bytes that it makes.
 */
export const minCopyBytes = 32;

/** Below two to the power of 53, seven bits a byte. */
const maxNumberBytes = 8;

export type Instruction =
  /** From the base. */
  | { readonly kind: 'copy'; readonly offset: number; readonly length: number }
  /** From the new file: its bytes follow. */
  | { readonly kind: 'insert'; readonly offset: number; readonly length: number };

/** @returns an instruction, without the bytes of an insert; @param copyEnd where the copy before it in its section ended */
export function encodeInstruction({ kind, offset, length }: Instruction, copyEnd: number): Buffer {
  if (kind === 'insert') return encodeNumber(length * 2);
  const step = offset - copyEnd;
  return Buffer.concat([encodeNumber(length * 2 + 1), encodeNumber(step < 0 ? -step * 2 - 1 : step * 2)]);
}

/** @returns the step that encodeInstruction wrote as this number */
export function stepOf(number: number): number {
  return number % 2 === 1 ? -(number + 1) / 2 : number / 2;
}

/** LEB128, unsigned, in the fewest bytes. By arithmetic: a shift would cut at 32 bits. */
export function encodeNumber(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  bytes.push(left);
  return Buffer.from(bytes);
}

/** Reads one number after the other, byte by byte. */
export class NumberReader {
  #value = 0;
  #count = 0;

  /** @returns the number with its last byte. @throws WritError DELTA_MALFORMED for one in more bytes than it needs, or too large */
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

/** @returns the files that a delta carries, in the order of the manifest: all whose content is nowhere in the base */
export function newContents(base: Manifest, next: Manifest): ManifestFile[] {
  const known = new Set(base.files.map(({ digest }) => digest));
  return next.files.filter(({ digest }) => !known.has(digest));
}

export function malformedDelta(what: string, facts: Record<string, unknown> = {}): WritError {
  return new WritError('DELTA_MALFORMED', `the delta is refused: ${what}`, { facts });
}
