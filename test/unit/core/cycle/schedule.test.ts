import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import {
  firstPollAt,
  nextDelay,
  nextPollAt,
  phaseMs,
  waitDelayMs,
} from '../../../../src/core/cycle/schedule.js';

const everyMs = 300_000;
const time = fc.integer({ min: 0, max: 4_000_000_000_000 });
const interval = fc.integer({ min: 1000, max: 30 * 86_400_000 });
const options = fc
  .record({
    nowMs: time,
    everyMs: interval,
    share: fc.double({ min: 0, max: 0.999, noNaN: true }),
    failures: fc.nat(20),
    random01: fc.double({ min: 0, max: 0.999, noNaN: true }),
  })
  .map(({ share, ...rest }) => ({ ...rest, phaseMs: Math.floor(share * rest.everyMs) }));

describe('the phase of a host', () => {
  it('is the same after every restart and differs between hosts', () => {
    assert.equal(phaseMs('edge-1', everyMs), phaseMs('edge-1', everyMs));
    assert.notEqual(phaseMs('edge-1', everyMs), phaseMs('edge-2', everyMs));
  });

  it('spreads 10,000 hosts evenly over the interval', () => {
    const buckets = new Array<number>(100).fill(0);
    for (let host = 0; host < 10_000; host++) {
      const phase = phaseMs(`edge-${host}`, everyMs);
      assert.ok(phase >= 0 && phase < everyMs);
      const bucket = Math.floor((phase / everyMs) * 100);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    // 100 expected in each; a binomial of 10,000 and 1/100 lies outside 60..145 once in some 100,000 times.
    assert.ok(Math.max(...buckets) < 145 && Math.min(...buckets) > 60, buckets.join(' '));
  });
});

describe('the next poll', () => {
  it('is later than now, at most one interval away, and at the phase', () => {
    fc.assert(
      fc.property(options, (given) => {
        const at = nextPollAt(given);
        assert.ok(at > given.nowMs && at <= given.nowMs + given.everyMs);
        assert.equal((at - given.phaseMs) % given.everyMs, 0);
      }),
    );
  });

  it('never moves back as time goes on', () => {
    fc.assert(
      fc.property(options, fc.nat(10_000_000), (given, later) => {
        assert.ok(nextPollAt({ ...given, nowMs: given.nowMs + later }) >= nextPollAt(given));
      }),
    );
  });
});

describe('the first poll after a start', () => {
  const nowMs = 1_000_000_000;
  const base = { nowMs, everyMs, phaseMs: 1234, anythingActive: 'yes' } as const;

  it('is immediate if nothing is active, nothing was ever fetched, or the last success is too old', () => {
    assert.equal(firstPollAt({ ...base, anythingActive: 'no', lastSuccessMs: nowMs - 1 }), nowMs);
    assert.equal(firstPollAt(base), nowMs);
    assert.equal(firstPollAt({ ...base, lastSuccessMs: nowMs - everyMs - 1 }), nowMs);
  });

  it('waits for the phase when the last success is recent', () => {
    assert.equal(firstPollAt({ ...base, lastSuccessMs: nowMs - everyMs }), nextPollAt(base));
  });

  it('is immediate if the last success is in the future', () => {
    assert.equal(firstPollAt({ ...base, lastSuccessMs: nowMs + 1 }), nowMs);
  });

  it('waits for a Retry-After that was stored before the restart', () => {
    const until = nowMs + 10 * everyMs;
    const at = firstPollAt({ ...base, anythingActive: 'no', retryAfterUntilMs: until });
    assert.ok(at >= until && at < until + everyMs);
    assert.equal((at - base.phaseMs) % everyMs, 0);
  });
});

describe('the delay after a poll', () => {
  it('ends at the phase without a failure', () => {
    fc.assert(
      fc.property(options, (given) => {
        const delay = nextDelay({ ...given, failures: 0 });
        assert.equal(given.nowMs + delay, nextPollAt(given));
      }),
    );
  });

  it('is a quick retry with jitter after one failure, never later than the phase', () => {
    fc.assert(
      fc.property(options, (given) => {
        const delay = nextDelay({ ...given, failures: 1 });
        assert.ok(delay > 0 && delay <= Math.ceil(Math.min(30_000, given.everyMs / 10)));
        assert.ok(given.nowMs + delay <= nextPollAt(given));
      }),
    );
    const delays = [0, 0.5, 0.99].map((random01) =>
      nextDelay({ nowMs: 0, everyMs, phaseMs: 0, failures: 1, random01 }),
    );
    assert.equal(new Set(delays).size, 3);
    assert.ok(Math.min(...delays) >= 15_000);
  });

  it('keeps the phase after more failures, and backs off to at most four intervals', () => {
    const delays = [2, 3, 4, 5, 6, 100].map((failures) =>
      nextDelay({ nowMs: 0, everyMs, phaseMs: 0, failures, random01: 0.5 }),
    );
    assert.deepEqual(
      delays.map((delay) => delay / everyMs),
      [1, 2, 3, 4, 4, 4],
    );
  });

  it('never ends before a Retry-After, and then at the phase again', () => {
    fc.assert(
      fc.property(options, fc.nat(100_000_000), (given, wait) => {
        const retryAfterUntilMs = given.nowMs + wait;
        const at = given.nowMs + nextDelay({ ...given, retryAfterUntilMs });
        assert.ok(at >= retryAfterUntilMs);
        assert.ok(at > given.nowMs);
        assert.ok(at <= Math.max(retryAfterUntilMs, given.nowMs + 4 * given.everyMs) + given.everyMs);
      }),
    );
  });
});

describe('the next attempt of a command that waits', () => {
  it('follows after half to all of 5 s, doubled up to a minute', () => {
    const delays = (random01: number) => [1, 2, 3, 4, 5, 60].map((tries) => waitDelayMs({ tries, random01 }));
    assert.deepEqual(delays(0), [2500, 5000, 10_000, 20_000, 30_000, 30_000]);
    assert.deepEqual(delays(1), [5000, 10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  it('is not before a Retry-After, which counts for an hour at most', () => {
    assert.equal(waitDelayMs({ tries: 1, random01: 0, retryAfterMs: 90_000 }), 90_000);
    assert.equal(waitDelayMs({ tries: 1, random01: 0, retryAfterMs: 1e12 }), 300_000);
    assert.equal(waitDelayMs({ tries: 1, random01: 0, retryAfterMs: 1 }), 2500);
  });
});
