import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timeLeft, utcTimeText } from '../../../../src/core/text/iso-time.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

describe('the remaining time of validity', () => {
  it('is the signed period a second after the signature', () => {
    assert.deepEqual(
      [365 * dayMs, 30 * dayMs, 7 * dayMs, 8 * hourMs].map((validMs) => timeLeft(validMs - 1000)),
      ['365 d', '30 d', '7 d', '8 h'],
    );
  });

  for (const [leftMs, text] of [
    [2 * dayMs, '2 d'],
    [2 * dayMs - 1, '48 h'],
    [2.5 * dayMs, '3 d'],
    [2 * hourMs, '2 h'],
    [2 * hourMs - 1, '119 min'],
    [59_999, '0 min'],
    [0, 'expired'],
    [-dayMs, 'expired'],
  ] as const)
    it(`is ${text} of ${leftMs} ms`, () => assert.equal(timeLeft(leftMs), text));
});

describe('a time in a message', () => {
  it('is UTC to the second, and a number of milliseconds if it is no date', () => {
    assert.equal(utcTimeText(1_000_000_000_000), '2001-09-09 01:46:40 UTC');
    assert.equal(utcTimeText(9e15), '9000000000000000 ms');
  });
});
