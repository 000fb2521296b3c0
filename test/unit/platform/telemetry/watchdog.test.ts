import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runWatchdog } from '../../../../src/platform/telemetry/watchdog.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { fakeNotifier } from '../../../kit/net/fake-notifier.js';

describe('the pings of a watchdog', () => {
  it('are sent at once and then at half of its interval', async () => {
    const clock = fakeClock();
    const notifier = fakeNotifier({ watchdogMs: 60_000 });
    const ended = new AbortController();
    const running = runWatchdog({ notifier, clock, works: () => true, signal: ended.signal });
    await clock.advance(0);
    assert.equal(notifier.notified.length, 1);
    await clock.advance(29_999);
    assert.equal(notifier.notified.length, 1);
    await clock.advance(1);
    assert.deepEqual(notifier.notified, [['WATCHDOG=1'], ['WATCHDOG=1']]);
    ended.abort();
    await running;
  });

  it('stop while the work is not confirmed, and resume afterwards', async () => {
    const clock = fakeClock();
    const notifier = fakeNotifier({ watchdogMs: 60_000 });
    const ended = new AbortController();
    let works = false;
    const running = runWatchdog({ notifier, clock, works: () => works, signal: ended.signal });
    await clock.advance(300_000);
    assert.equal(notifier.notified.length, 0);
    works = true;
    await clock.advance(30_000);
    assert.equal(notifier.notified.length, 1);
    ended.abort();
    await running;
  });

  it('are not sent without a watchdog', async () => {
    const notifier = fakeNotifier();
    const signal = new AbortController().signal;
    await runWatchdog({ notifier, clock: fakeClock(), works: () => true, signal });
    assert.equal(notifier.notified.length, 0);
  });
});
