import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { computeBackoffMs } from '../../../src/core/backoff.js';

describe('the time between attempts that fail in a row', () => {
  const backoff = { firstMs: 5000, maxMs: 300_000 };
  const after = (failures: number) => computeBackoffMs(failures, backoff);

  it('doubles with each failure, up to its bound', () => {
    assert.deepEqual([1, 2, 3, 6, 7].map(after), [5000, 10_000, 20_000, 160_000, 300_000]);
  });

  it('is an integer within its bound after any number of failures', () => {
    assert.deepEqual([100, 1e9, Number.MAX_SAFE_INTEGER].map(after), [300_000, 300_000, 300_000]);
    assert.equal(computeBackoffMs(1e9, { firstMs: 1, maxMs: Number.MAX_SAFE_INTEGER }), 2 ** 30);
  });

  it('is the first interval before any failure', () => {
    assert.deepEqual([0, -1].map(after), [5000, 5000]);
  });

  it('never exceeds a bound below the first interval', () => {
    assert.equal(computeBackoffMs(1, { firstMs: 5000, maxMs: 1000 }), 1000);
  });
});
