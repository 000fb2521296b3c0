// The seed of one run of the tests: every generated case follows from it, so a failure can be repeated. With CI=true it
// is a constant, because the result of an unchanged commit must not depend on chance. By hand it is drawn once per run,
// because new cases find new faults. WRIT_TEST_SEED overrides both.
import { randomInt } from 'node:crypto';

/** test/kit/assert/seeded.ts has the same number. */
export const fixedSeed = 20261101;
/** Below 2 ** 31: fast-check takes a signed integer of 32 bits. */
const seedBound = 2 ** 31;

/**
 * @param {NodeJS.ProcessEnv} env
 * @throws {RangeError} for a WRIT_TEST_SEED that is not a whole number below 2 ** 31
 */
export function chooseSeed({ WRIT_TEST_SEED: given, CI: ci }) {
  if (given === undefined) return ci === 'true' ? fixedSeed : randomInt(seedBound);
  if (!/^[0-9]{1,10}$/.test(given) || Number(given) >= seedBound)
    throw new RangeError(`WRIT_TEST_SEED is a whole number below ${seedBound}, not '${given}'`);
  return Number(given);
}
