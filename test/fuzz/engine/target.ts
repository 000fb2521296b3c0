// What is fuzzed: one reader of bytes that others write, and what must hold of whatever it makes of them.
import { isWritError } from '../../../src/core/errors.js';
import type { Seeded } from '../../kit/assert/seeded.js';

export interface Target {
  readonly name: string;
  /** Honest inputs, and those that were attacks: what the changes begin with. */
  readonly seeds: readonly Buffer[];
  /** Words of the format: a random byte seldom makes one. */
  readonly words: readonly string[];
  /** Another honest-looking input, made by the rules of the format; one of four begins with it. */
  readonly make?: (random: Seeded) => Buffer;
  /** A change that keeps the form of the format. */
  readonly reshape?: (input: Buffer, random: Seeded) => Buffer;
  /** Makes a changed input get further: a checksum that is right again. */
  readonly repair?: (input: Buffer) => Buffer;
  /** @throws whatever is a fault: an error that is no refusal, or an assertion about what was accepted */
  check(input: Buffer): void | Promise<void>;
  close?(): Promise<void>;
}

/**
 * @param codes what the reader may refuse with
 * @returns what it made of the input, or the code of its refusal
 * @throws any other error, which is a fault
 */
export function acceptedOr<T>(codes: readonly string[], read: () => T): { value: T } | { code: string } {
  try {
    return { value: read() };
  } catch (error) {
    if (isWritError(error) && codes.includes(error.code)) return { code: error.code };
    throw error;
  }
}

/** In pieces of these sizes, over and over. */
export function* inPieces(input: Buffer, sizes: readonly number[]): Generator<Buffer> {
  for (let at = 0, turn = 0; at < input.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield input.subarray(at, at + size);
    at += size;
  }
}
