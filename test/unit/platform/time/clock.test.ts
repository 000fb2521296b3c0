// Guarantees of the system clock for its callers, and of the fake clock for all other tests.
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { systemClock, yieldToEventLoop } from '../../../../src/platform/time/clock.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

/**
 * Starts a sleep without waiting for it, so that an endless sleep fails its test and does not block it.
 * @returns whether the sleep has ended
 */
function beginSleep(t: TestContext, delayMs: number, signal: AbortSignal): () => boolean {
  const timers = t.mock.method(globalThis, 'setTimeout').mock;
  t.after(() => {
    for (const { result } of timers.calls) clearTimeout(result);
  });
  let isOver = false;
  void systemClock.sleep(delayMs, signal).then(() => {
    isOver = true;
  });
  return () => isOver;
}

describe('systemClock', () => {
  it('returns epoch milliseconds, and a monotonic time that does not decrease', () => {
    const earliestMs = Date.now();
    const nowMs = systemClock.nowMs();
    assert.ok(earliestMs <= nowMs && nowMs <= Date.now());
    const first = systemClock.monotonicMs();
    assert.ok(systemClock.monotonicMs() >= first);
  });

  it('sleeps at least for the given time, less the millisecond that a timer rounds off', async () => {
    const before = systemClock.monotonicMs();
    await systemClock.sleep(20);
    assert.ok(systemClock.monotonicMs() - before >= 19);
  });

  it('treats a negative delay as 0', async () => {
    await systemClock.sleep(-5);
  });

  it('ends a sleep at an abort, without rejecting', async (t) => {
    const stop = new AbortController();
    const isOver = beginSleep(t, 60_000, stop.signal);
    await yieldToEventLoop();
    assert.equal(isOver(), false);
    stop.abort();
    await yieldToEventLoop();
    assert.equal(isOver(), true);
  });

  it('does not begin to sleep under a signal that is aborted already', async (t) => {
    const isOver = beginSleep(t, 60_000, AbortSignal.abort());
    await yieldToEventLoop();
    assert.equal(isOver(), true);
  });

  it('does not fire at once for a delay above the 32 bits of a timer', async (t) => {
    const stop = new AbortController();
    const isOver = beginSleep(t, 2 ** 40, stop.signal);
    await systemClock.sleep(20);
    assert.equal(isOver(), false);
    stop.abort();
    await yieldToEventLoop();
    assert.equal(isOver(), true);
  });

  it('leaves no listener on the signal of a sleep that ended by itself', async () => {
    const stop = new AbortController();
    let removed = 0;
    const remove = stop.signal.removeEventListener.bind(stop.signal);
    stop.signal.removeEventListener = ((...args: Parameters<typeof remove>) => {
      removed += 1;
      remove(...args);
    }) as typeof remove;
    await systemClock.sleep(1, stop.signal);
    assert.equal(removed, 1);
  });
});

describe('fakeClock', () => {
  it('wakes sleepers in the order of their time', async () => {
    const clock = fakeClock({ nowMs: 0 });
    const woken: string[] = [];
    const late = clock.sleep(300).then(() => woken.push(`late at ${clock.nowMs()}`));
    const early = clock.sleep(100).then(() => woken.push(`early at ${clock.nowMs()}`));
    assert.equal(clock.sleeping(), 2);
    await clock.advance(99);
    assert.deepEqual(woken, []);
    await clock.advance(1000);
    await Promise.all([late, early]);
    assert.deepEqual(woken, ['early at 100', 'late at 300']);
    assert.equal(clock.nowMs(), 1099);
  });

  it('wakes a loop again and again within one advance', async () => {
    const clock = fakeClock();
    const stop = new AbortController();
    let rounds = 0;
    const loop = (async () => {
      while (!stop.signal.aborted) {
        await clock.sleep(10, stop.signal);
        rounds += 1;
      }
    })();
    await clock.advance(50);
    assert.equal(rounds, 5);
    stop.abort();
    await loop;
  });

  it('skips sleeps in skip mode, moving time and writing down the delays', async () => {
    const clock = fakeClock({ nowMs: 0, mode: 'skip' });
    await clock.sleep(200);
    await clock.sleep(50);
    assert.equal(clock.monotonicMs(), 1250);
    assert.deepEqual(clock.sleeps, [200, 50]);
  });

  it('moves wall time alone when the clock of the host is set', () => {
    const clock = fakeClock({ nowMs: 5000 });
    clock.setWallTime(1);
    assert.equal(clock.nowMs(), 1);
    assert.equal(clock.monotonicMs(), 1000);
  });
});
