// What several rounds say together.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { summarize } from '../../../bench/measure/statistics.js';

describe('a summary', () => {
  it('has the middle one of an odd number, whatever their order', () => {
    assert.deepEqual(summarize([30, 10, 20]), { rounds: 3, median: 20, least: 10, most: 30 });
  });

  it('has the mean of the two in the middle of an even number', () => {
    assert.deepEqual(summarize([4, 1, 2, 100]), { rounds: 4, median: 3, least: 1, most: 100 });
  });

  it('sorts numbers as numbers, and leaves what it was given', () => {
    const given = [100, 9, 20];
    assert.equal(summarize(given)?.median, 20);
    assert.deepEqual(given, [100, 9, 20]);
  });

  it('is none where nothing was measured', () => {
    assert.equal(summarize([]), undefined);
  });
});
