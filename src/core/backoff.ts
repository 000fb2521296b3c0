// The time between attempts that fail in a row: it doubles, up to a bound. Pure.

export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * @param failures in a row; less than 1 counts as 1
 * @returns milliseconds until the next attempt: `firstMs` after the first failure, twice as many after each one more, and never
 * more than `maxMs`
 */
export function computeBackoffMs(failures: number, { firstMs, maxMs }: Backoff): number {
  // A larger exponent makes a number of which integers lose digits, and then Infinity.
  const doublings = Math.min(Math.max(failures - 1, 0), 30);
  return Math.min(firstMs * 2 ** doublings, maxMs);
}
