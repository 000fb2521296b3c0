import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { grantedInterval, judgeCounter } from '../../../../src/fleet/hosts/counter-rules.js';

describe('the counter of a report', () => {
  const last = { counter: 7, bodyDigest: 'a', nonce: '' };
  const asked = { ...last, nonce: 'n' };

  const cases = [
    ['above the last one is news', last, { counter: 8, bodyDigest: 'b' }, 'newer'],
    ['far above it is news too', last, { counter: 8000, bodyDigest: 'a' }, 'newer'],
    ['with the same body is an answer that was lost', last, { counter: 7, bodyDigest: 'a' }, 'repeat'],
    ['with another body is challenged', last, { counter: 7, bodyDigest: 'b' }, 'challenge'],
    ['below the last one is challenged', last, { counter: 6, bodyDigest: 'a' }, 'challenge'],
    ['over the nonce is taken', asked, { counter: 8, bodyDigest: 'b', nonce: 'n' }, 'answered'],
    ['over another nonce is challenged', asked, { counter: 8, bodyDigest: 'b', nonce: 'm' }, 'challenge'],
    [
      'over a nonce that nobody asked is challenged',
      last,
      { counter: 8, bodyDigest: 'b', nonce: '' },
      'challenge',
    ],
    [
      'that is not above, over the nonce, is challenged',
      asked,
      { counter: 7, bodyDigest: 'a', nonce: 'n' },
      'challenge',
    ],
    ['above the last one is news while a challenge is open', asked, { counter: 8, bodyDigest: 'b' }, 'newer'],
  ] as const;
  for (const [name, before, next, verdict] of cases)
    it(name, () => assert.equal(judgeCounter(before, next), verdict));
});

describe('the interval that is granted', () => {
  it('is the requested one, or longer: at most ten times and an hour', () => {
    assert.equal(grantedInterval(300_000, 1), 300_000);
    assert.equal(grantedInterval(300_000, 0.1), 300_000);
    assert.equal(grantedInterval(300_000, 2.5), 750_000);
    assert.equal(grantedInterval(60_000, 100), 600_000);
    assert.equal(grantedInterval(600_000, 100), 3_600_000);
    assert.equal(grantedInterval(7_200_000, 3), 7_200_000);
  });
});
