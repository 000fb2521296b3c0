// How `npm run test:long` runs a part of an exhaustive test: `NAME.sample.test.ts` says how much of it, and loads
// `NAME.test.ts` beside it, which asks here for its cases. The seed chooses them; without a sample all are tried.
import { seeded, testSeed } from './seeded.js';

/**
 * Says what will be tried, and how to have another part or all of it.
 * @param name of the test, as `exhaustive/kills/kills`
 * @param size of each list of cases that the test has; WRIT_TEST_SAMPLE asks for another
 */
export function takeSample(name: string, size: number): void {
  process.env['WRIT_TEST_SAMPLE'] ??= String(size);
  const { WRIT_TEST_SAMPLE } = process.env;
  const seed = `WRIT_TEST_SAMPLE=${WRIT_TEST_SAMPLE} by WRIT_TEST_SEED=${testSeed()}`;
  process.stdout.write(`a sample, ${seed}; all: node scripts/run-tests.js ${name}\n`);
}

/** @returns how many of each list of cases; undefined where all are tried */
export function sampleSize(): number | undefined {
  const size = process.env['WRIT_TEST_SAMPLE'];
  return size === undefined ? undefined : Number(size);
}

/** @returns all of them, or in a sample so many as the seed chooses, in their order */
export function sampled<T>(all: readonly T[], size = sampleSize()): readonly T[] {
  if (size === undefined || size >= all.length) return all;
  const random = seeded(testSeed());
  const left = [...all.keys()];
  const chosen = Array.from({ length: size }, () => left.splice(random.int(left.length), 1)).flat();
  return all.filter((_, index) => chosen.includes(index));
}
