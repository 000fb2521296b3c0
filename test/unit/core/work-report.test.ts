import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTally } from '../../../src/core/work-report.js';

function tally(total: number) {
  const reported: number[] = [];
  const part = createTally(total, (done, of) => {
    assert.equal(of, total);
    reported.push(done);
  });
  return { reported, part };
}

describe('the progress of several parts', () => {
  it('adds up its parts', () => {
    const { reported, part } = tally(30);
    const first = part(10);
    first(4);
    first(6);
    const second = part(20);
    second(20);
    assert.deepEqual(reported, [0, 4, 10, 10, 30]);
  });

  it('counts an incomplete part as done when the next begins', () => {
    const { reported, part } = tally(20);
    part(10)(1);
    part(10);
    assert.deepEqual(reported, [0, 1, 10]);
  });

  it('never counts a part for more than its size', () => {
    const { reported, part } = tally(20);
    part(10)(100);
    part(10)(1);
    assert.deepEqual(reported, [0, 10, 10, 11]);
  });
});
