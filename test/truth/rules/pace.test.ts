// The intervals of a run: injected intervals are shorter than any that a configuration may set.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { probeEveryMs, quickIntervals } from './pace.js';

describe('the pace of a run', () => {
  it('is below the configurable minimum when quick, and as on the page when real', () => {
    assert.ok(quickIntervals.probeEveryMs < 30_000);
    assert.equal(probeEveryMs(30_000, 'quick'), quickIntervals.probeEveryMs);
    assert.equal(probeEveryMs(30_000, 'real'), 30_000);
  });

  it('does not repeat a probe without an interval', () => {
    assert.equal(probeEveryMs(0, 'quick'), 0);
  });
});
