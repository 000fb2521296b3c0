// Selects a part of an exhaustive test for `npm run test:long`: `NAME.sample.test.ts` sets its size and loads `NAME.test.ts`, which
// selects its cases here. The seed selects them; without a sample all cases run.
import { seeded, testSeed } from './seeded.js';

/**
 * Sets the sample size, and prints how to run another part or all cases.
 * @param name of the test, as `exhaustive/kills/kills`
 * @param size for each list of cases; WRIT_TEST_SAMPLE overrides it
 */
export function takeSample(name: string, size: number): void {
  process.env['WRIT_TEST_SAMPLE'] ??= String(size);
  const { WRIT_TEST_SAMPLE } = process.env;
  const seed = `WRIT_TEST_SAMPLE=${WRIT_TEST_SAMPLE} by WRIT_TEST_SEED=${testSeed()}`;
  process.stdout.write(`a sample, ${seed}; all: node scripts/run-tests.js ${name}\n`);
}

/** @returns the sample size of each list of cases; undefined if all cases run */
export function sampleSize(): number | undefined {
  const size = process.env['WRIT_TEST_SAMPLE'];
  return size === undefined ? undefined : Number(size);
}

/** @returns all cases, or as many as `size`, selected by the seed, in their order */
export function sampled<T>(all: readonly T[], size = sampleSize()): readonly T[] {
  if (size === undefined || size >= all.length) return all;
  const random = seeded(testSeed());
  const left = [...all.keys()];
  const chosen = Array.from({ length: size }, () => left.splice(random.int(left.length), 1)).flat();
  return all.filter((_, index) => chosen.includes(index));
}
