// The rate limit of a key, and the effect of a replayed head.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KeyRate } from '../../../../src/fleet/bodies/key-rate.js';

/** @returns how many of the counters were accepted */
function takenOf(rate: KeyRate, key: string, counters: readonly number[], nowMs: number): number {
  return counters.filter((counter) => rate.take(key, counter, nowMs)).length;
}

const from = (first: number, count: number): number[] => Array.from({ length: count }, (_, at) => first + at);

describe('the rate of a key', () => {
  it('takes sixty reports at once and two each second, of each key', () => {
    const rate = new KeyRate();
    assert.equal(takenOf(rate, 'a', from(1, 70), 0), 60);
    assert.equal(takenOf(rate, 'b', from(1, 70), 0), 60);
    assert.equal(takenOf(rate, 'a', from(100, 10), 3000), 6);
    assert.equal(takenOf(rate, 'a', from(200, 100), 3_600_000), 60);
  });

  it('has a separate rate for counters that are not above the last accepted one', () => {
    const rate = new KeyRate();
    assert.ok(rate.take('a', 7, 0));
    rate.note('a', 7, true);
    assert.equal(takenOf(rate, 'a', Array<number>(1000).fill(7), 0), 10);
    assert.equal(takenOf(rate, 'a', Array<number>(1000).fill(3), 10_000), 2);
    assert.equal(takenOf(rate, 'a', from(8, 70), 10_000), 60, 'the host itself');
  });

  it('ignores the counter of a report that was not accepted', () => {
    const rate = new KeyRate();
    rate.take('a', 1000, 0);
    rate.note('a', 1000, false);
    assert.equal(takenOf(rate, 'a', from(1, 70), 0), 59);
  });

  it('knows a key as accepted from its first accepted report until one is refused', () => {
    const rate = new KeyRate();
    assert.equal(rate.isAccepted('a'), false);
    rate.take('a', 1, 0);
    assert.equal(rate.isAccepted('a'), false);
    rate.note('a', 1, true);
    assert.equal(rate.isAccepted('a'), true);
    rate.note('a', 2, false);
    assert.equal(rate.isAccepted('a'), false);
  });

  it('remembers fifty thousand keys, those of the newest reports', () => {
    const rate = new KeyRate();
    for (let at = 0; at <= 50_000; at++) {
      rate.take(`key-${at}`, 1, 0);
      rate.note(`key-${at}`, 1, true);
    }
    assert.deepEqual(
      ['key-0', 'key-1', 'key-50000'].map((key) => rate.isAccepted(key)),
      [false, true, true],
    );
  });
});
