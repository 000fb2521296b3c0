// The intervals of a run: those that are injected are shorter than any that a configuration may set.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { probeEveryMs, quickIntervals } from './pace.js';

describe('the pace of a run', () => {
  it('is quick below what a configuration may set, and as on the page where it is real', () => {
    assert.ok(quickIntervals.probeEveryMs < 30_000);
    assert.equal(probeEveryMs(30_000, 'quick'), quickIntervals.probeEveryMs);
    assert.equal(probeEveryMs(30_000, 'real'), 30_000);
  });

  it('repeats no probe that is not repeated', () => {
    assert.equal(probeEveryMs(0, 'quick'), 0);
  });
});
