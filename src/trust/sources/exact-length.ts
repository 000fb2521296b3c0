// Requires that a stream has exactly its signed length: rejects endless data and truncation.
import { WritError } from '../../core/errors.js';

/**
 * @param options expected: number of bytes; what: name of the file for the error
 * @throws WritError DOWNLOAD_TOO_LARGE before it yields a byte too many; DOWNLOAD_TRUNCATED at an early end
 */
export async function* exactLength(
  chunks: AsyncIterable<Buffer>,
  { expected, what }: { readonly expected: number; readonly what: string },
): AsyncGenerator<Buffer> {
  let actual = 0;
  for await (const chunk of chunks) {
    actual += chunk.length;
    if (actual > expected) throw tooLarge(what, expected);
    yield chunk;
  }
  if (actual < expected) throw truncated(what, expected, actual);
}

/**
 * Reads a body of at most maxBytes into memory.
 * @param what the location of the body, for the error
 * @throws WritError DOWNLOAD_TOO_LARGE
 */
export async function readBounded(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
  what: string,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let actual = 0;
  for await (const chunk of chunks) {
    actual += chunk.length;
    if (actual > maxBytes) throw tooLarge(what, maxBytes);
    parts.push(chunk);
  }
  return Buffer.concat(parts, actual);
}

/**
 * @param what the location of the data; `expected` is its signed or greatest length in bytes
 * @param actual the announced length; undefined where the data was cut at `expected`
 * @returns the error DOWNLOAD_TOO_LARGE
 */
export function tooLarge(what: string, expected: number, actual?: number): WritError {
  const facts = actual === undefined ? { expected } : { expected, actual };
  return new WritError('DOWNLOAD_TOO_LARGE', `${what} is longer than ${expected} bytes`, { facts });
}

/**
 * @param what the location of the data; the lengths are in bytes
 * @returns the error DOWNLOAD_TRUNCATED
 */
export function truncated(what: string, expected: number, actual: number): WritError {
  return new WritError('DOWNLOAD_TRUNCATED', `${what} ended after ${actual} of ${expected} bytes`, {
    facts: { expected, actual },
  });
}

/**
 * @param what the location that does not exist
 * @returns the error TARGET_MISSING
 */
export function targetMissing(what: string): WritError {
  return new WritError('TARGET_MISSING', `${what} is not there`, { facts: { location: what } });
}
