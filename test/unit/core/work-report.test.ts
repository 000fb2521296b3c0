import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTally } from '../../../src/core/work-report.js';

function tally(total: number) {
  const said: number[] = [];
  const part = createTally(total, (done, of) => {
    assert.equal(of, total);
    said.push(done);
  });
  return { said, part };
}

describe('a tally', () => {
  it('adds up its parts', () => {
    const { said, part } = tally(30);
    const first = part(10);
    first(4);
    first(6);
    const second = part(20);
    second(20);
    assert.deepEqual(said, [0, 4, 10, 10, 30]);
  });

  it('takes a part that did less for done when the next begins', () => {
    const { said, part } = tally(20);
    part(10)(1);
    part(10);
    assert.deepEqual(said, [0, 1, 10]);
  });

  it('never counts a part for more than its size', () => {
    const { said, part } = tally(20);
    part(10)(100);
    part(10)(1);
    assert.deepEqual(said, [0, 10, 10, 11]);
  });
});
