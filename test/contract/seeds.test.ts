// The seed of generated tests: constant in CI, drawn by hand, and the same for every generator of a process.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { fixedSeed, testSeed } from '../kit/assert/seeded.js';
import { projectRoot } from '../kit/sources/source-files.js';

interface TestSeed {
  readonly fixedSeed: number;
  chooseSeed(env: Readonly<Record<string, string>>): number;
}

/** scripts/test-seed.js, which is JavaScript. */
const seeds = (await import(join(projectRoot, 'scripts/test-seed.js'))) as TestSeed;

describe('the seed of a run', () => {
  it('is constant with CI=true', () => {
    assert.equal(seeds.chooseSeed({ CI: 'true' }), fixedSeed);
    assert.equal(seeds.fixedSeed, fixedSeed);
  });

  it('is drawn without CI', () => {
    const drawn = new Set(Array.from({ length: 20 }, () => seeds.chooseSeed({})));
    assert.ok(drawn.size > 1);
    for (const seed of drawn) assert.equal(seed, seed | 0);
  });

  it('is WRIT_TEST_SEED where the caller sets it, also in CI', () => {
    assert.equal(seeds.chooseSeed({ WRIT_TEST_SEED: '123', CI: 'true' }), 123);
    assert.equal(seeds.chooseSeed({ WRIT_TEST_SEED: '0' }), 0);
  });

  it('is refused where it is no whole number below 2 ** 31', () => {
    for (const given of ['', 'x', '-1', '1.5', '1e3', String(2 ** 31)])
      assert.throws(() => seeds.chooseSeed({ WRIT_TEST_SEED: given }), RangeError, given);
  });

  it('reaches fast-check in every test process', () => {
    assert.ok(process.env['WRIT_TEST_SEED'] !== undefined);
    assert.equal(fc.readConfigureGlobal().seed, testSeed());
  });
});
