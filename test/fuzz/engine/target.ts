// The interface of a target: a reader of untrusted bytes, and the assertions about its results.
import { isWritError } from '../../../src/core/errors.js';
import type { Seeded } from '../../kit/assert/seeded.js';

export interface Target {
  readonly name: string;
  /** Correct inputs and known attacks, from which changes begin. */
  readonly seeds: readonly Buffer[];
  /** Tokens of the format, because random bytes seldom form one. */
  readonly tokens: readonly string[];
  /** Generates an input by the rules of the format; one of four inputs begins with it. */
  readonly make?: (random: Seeded) => Buffer;
  /** A change that keeps the structure of the format. */
  readonly reshape?: (input: Buffer, random: Seeded) => Buffer;
  /** Repairs a changed input so that it gets further, for example its checksum. */
  readonly repair?: (input: Buffer) => Buffer;
  /** @throws each fault: an error that is no expected rejection, or a failed assertion about an accepted input */
  check(input: Buffer): void | Promise<void>;
  close?(): Promise<void>;
}

/**
 * @param codes with which the reader may reject the input
 * @returns the value of an accepted input, or the code of its rejection
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

/** @param sizes of the pieces in bytes, used repeatedly */
export function* inPieces(input: Buffer, sizes: readonly number[]): Generator<Buffer> {
  for (let at = 0, turn = 0; at < input.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield input.subarray(at, at + size);
    at += size;
  }
}
