// Randomness that can be had again: the cases of a generated test follow from one number, which a failing test names.
// scripts/run-tests.js sets it by WRIT_TEST_SEED (scripts/test-seed.js), WRIT_TEST_CASES asks for more cases than a run in CI has time for.

import { randomInt } from 'node:crypto';

export interface Seeded {
  /** An integer from 0 up to, not including, `below`. */
  int(below: number): number;
  pick<T>(values: readonly T[]): T;
  /** True once in `times`. */
  once(times: number): boolean;
}

/** @example const random = seeded(caseSeed(seed, 17)); */
export function seeded(seed: number): Seeded {
  let state = seed >>> 0;
  // Weyl sequence and two rounds of mixing: 32 bits are plenty to choose where to hit.
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

/** Bytes that no compressor shrinks, the same in every run. */
export function seededBytes(count: number, seed = fixedSeed): Buffer {
  const random = seeded(seed);
  const words = Uint32Array.from({ length: Math.ceil(count / 4) }, () => random.int(2 ** 32));
  return Buffer.from(words.buffer).subarray(0, count);
}

/** Every case has a seed of its own, so that one can be run alone. */
export function caseSeed(seed: number, index: number): number {
  return (Math.imul(seed, 0x01000193) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0;
}

/** The seed of every run with CI=true; scripts/test-seed.js has the same number. */
export const fixedSeed = 20261101;

/** Set by the runner. A program that starts without the runner has the fixed seed. */
export function testSeed(): number {
  return Number(process.env['WRIT_TEST_SEED'] ?? fixedSeed);
}

/** For a long search by hand, which tries other cases in each run: drawn, unless WRIT_TEST_SEED or CI=true fixes it. */
export function searchSeed(): number {
  const { WRIT_TEST_SEED, CI } = process.env;
  return WRIT_TEST_SEED === undefined && CI !== 'true' ? randomInt(2 ** 31) : testSeed();
}

/** @param usual what a run in CI has time for */
export function testCases(usual: number): number {
  return Number(process.env['WRIT_TEST_CASES'] ?? usual);
}
