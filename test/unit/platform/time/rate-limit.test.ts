import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boundedPace, unboundedPace } from '../../../../src/platform/time/rate-limit.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const { signal } = new AbortController();

describe('a bounded pace', () => {
  for (const [bytesPerSecond, chunk] of [
    [1_000_000, 100_000],
    [100_000, 1_000_000],
    [20_000_000, 4096],
  ] as const) {
    it(`holds ${bytesPerSecond} B/s in reads of ${chunk}`, async () => {
      const clock = fakeClock({ mode: 'skip' });
      const pace = boundedPace({ clock, bytesPerSecond, signal });
      const startMs = clock.monotonicMs();
      for (let done = 0; done < 10 * bytesPerSecond; done += chunk) await pace.spent(chunk);
      const tookMs = clock.monotonicMs() - startMs;
      // The pace may be ahead by the bytes of the first 200 ms, and by those of a sleep that would be too short.
      assert.ok(tookMs >= 9700 && tookMs <= 10_000 + (chunk / bytesPerSecond) * 1000, String(tookMs));
    });
  }

  it('gives no credit for a long time without a read', async () => {
    const clock = fakeClock({ mode: 'skip' });
    const pace = boundedPace({ clock, bytesPerSecond: 1_000_000, signal });
    await clock.advance(3_600_000);
    const startMs = clock.monotonicMs();
    await pace.spent(5_000_000);
    assert.ok(clock.monotonicMs() - startMs >= 4700);
  });

  it('ends at once when its signal aborts', async () => {
    const clock = fakeClock();
    const stop = new AbortController();
    const waiting = boundedPace({ clock, bytesPerSecond: 1000, signal: stop.signal }).spent(1_000_000);
    stop.abort();
    await assert.rejects(waiting, { code: 'INTERRUPTED' });
  });
});

describe('an unbounded pace', () => {
  it('runs the event loop in between', async () => {
    const pace = unboundedPace();
    let hadTurn = false;
    setImmediate(() => {
      hadTurn = true;
    });
    await pace.spent(8_000_000);
    assert.equal(hadTurn, true);
  });
});
