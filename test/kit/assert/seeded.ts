// Reproducible randomness: the cases of a generated test follow from one number, which a failing test prints.
// scripts/run-tests.js sets WRIT_TEST_SEED (scripts/test-seed.js). WRIT_TEST_CASES sets a higher number of cases than CI has
// time for.

import { randomInt } from 'node:crypto';

export interface Seeded {
  /** @returns an integer of at least 0 and less than `below` */
  int(below: number): number;
  pick<T>(values: readonly T[]): T;
  /** True with a probability of 1 in `times`. */
  once(times: number): boolean;
}

/**
 * @returns a generator; its `pick` throws RangeError for an empty list
 * @example const random = seeded(caseSeed(seed, 17));
 */
export function seeded(seed: number): Seeded {
  let state = seed >>> 0;
  // Weyl sequence and two rounds of mixing: 32 bits suffice to select cases.
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
  const int = (below: number): number => next() % below;
  return {
    int,
    pick: (values) => {
      const value = values[int(values.length)];
      if (value === undefined) throw new RangeError('nothing to pick from');
      return value;
    },
    once: (times) => int(times) === 0,
  };
}

/** @returns incompressible bytes, equal for the same seed */
export function seededBytes(count: number, seed = fixedSeed): Buffer {
  const random = seeded(seed);
  const numbers = Uint32Array.from({ length: Math.ceil(count / 4) }, () => random.int(2 ** 32));
  return Buffer.from(numbers.buffer).subarray(0, count);
}

/** @returns the seed of one case, so that it can run alone */
export function caseSeed(seed: number, index: number): number {
  return (Math.imul(seed, 0x01000193) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0;
}

/** The seed of each run with CI=true; scripts/test-seed.js has the same number. */
export const fixedSeed = 20261101;

/** @returns the seed that the runner set; the fixed seed without the runner */
export function testSeed(): number {
  return Number(process.env['WRIT_TEST_SEED'] ?? fixedSeed);
}

/** @returns the seed of a long search by hand: random, unless WRIT_TEST_SEED or CI=true fixes it */
export function searchSeed(): number {
  const { WRIT_TEST_SEED, CI } = process.env;
  return WRIT_TEST_SEED === undefined && CI !== 'true' ? randomInt(2 ** 31) : testSeed();
}

/** @param usual number of cases for which a run in CI has time. @returns WRIT_TEST_CASES, or `usual` without it */
export function testCases(usual: number): number {
  return Number(process.env['WRIT_TEST_CASES'] ?? usual);
}
