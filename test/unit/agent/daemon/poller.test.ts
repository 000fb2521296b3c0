import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cronTimeAfterNow, type PollLoopOptions, runPollLoop } from '../../../../src/agent/daemon/poller.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const startMs = Date.UTC(2026, 10, 1);
const minuteMs = 60_000;

interface Polled {
  /** Minutes after the start. */
  readonly at: number[];
}

/** Runs the loop for a number of polls on a clock that each sleep advances. */
async function polls(count: number, options: Partial<PollLoopOptions>): Promise<Polled> {
  const clock = fakeClock({ nowMs: startMs, mode: 'skip' });
  const stop = new AbortController();
  const at: number[] = [];
  const base: PollLoopOptions = {
    poll: { kind: 'every', everyMs: 10 * minuteMs },
    installId: 'test',
    clock,
    random01: () => 1,
    nextCronTime: (_poll, afterMs) => (Math.floor(afterMs / minuteMs) + 1) * minuteMs,
    retryAfterUntilMs: () => undefined,
    isAnythingActive: () => false,
    onPoll: async () => 'reached',
    onScheduled: () => undefined,
  };
  const onPoll = async (): Promise<'reached' | 'failed'> => {
    at.push((clock.nowMs() - startMs) / minuteMs);
    if (at.length === count) stop.abort();
    return (options.onPoll ?? base.onPoll)();
  };
  await runPollLoop({ ...base, ...options, onPoll }, stop.signal);
  return { at };
}

const gaps = ({ at }: Polled): number[] =>
  at.slice(1).map((one, index) => Math.round((one - (at[index] ?? 0)) * minuteMs) / minuteMs);

describe('the poll loop', () => {
  it('polls at once without a policy, then at the host’s phase of each interval', async () => {
    const polled = await polls(4, {});
    assert.equal(polled.at[0], 0);
    assert.deepEqual(gaps(polled).slice(1), [10, 10]);
  });

  it('polls again soon after one failure, and with a longer delay after each further one', async () => {
    const all = gaps(await polls(6, { isAnythingActive: () => true, onPoll: async () => 'failed' }));
    assert.ok(all[0]! <= 0.5, String(all[0]));
    assert.deepEqual(all.slice(2), [20, 30, 40]);
  });

  it('retries within a minute while no policy is active, by interval or expression', async () => {
    for (const poll of [
      { kind: 'every', everyMs: 720 * minuteMs },
      { kind: 'cron', expression: '0 3 * * *' },
    ] as const) {
      const nextCronTime = (): number => startMs + 720 * minuteMs;
      const all = gaps(await polls(7, { poll, nextCronTime, onPoll: async () => 'failed' }));
      const seconds = all.map((minutes) => Math.round(minutes * 60));
      assert.deepEqual(seconds, [5, 10, 20, 40, 60, 60], poll.kind);
    }
  });

  it('polls once at each time of the expression', async () => {
    const polled = await polls(4, {
      poll: { kind: 'cron', expression: '* * * * *' },
      isAnythingActive: () => true,
    });
    assert.deepEqual(polled.at, [1, 2, 3, 4]);
  });

  it('never polls before a Retry-After, by interval or expression', async () => {
    const retryAfterUntilMs = (): number => startMs + 4 * minuteMs;
    const every = await polls(1, { retryAfterUntilMs });
    assert.ok(every.at[0]! >= 4 && every.at[0]! < 14, String(every.at[0]));
    const cron = await polls(2, { retryAfterUntilMs, poll: { kind: 'cron', expression: '* * * * *' } });
    assert.deepEqual(cron.at, [4, 5]);
  });
});

describe('the poll loop, after the clock was set', () => {
  async function pollsAfter(stepMs: number, retryAfterUntilMs?: number): Promise<readonly number[]> {
    const clock = fakeClock({ nowMs: startMs });
    const stop = new AbortController();
    const at: number[] = [];
    const loop = runPollLoop(
      {
        poll: { kind: 'every', everyMs: 720 * minuteMs },
        ...{ installId: 'test', clock, random01: () => 1, onScheduled: () => undefined },
        nextCronTime: () => 0,
        retryAfterUntilMs: () => retryAfterUntilMs,
        isAnythingActive: () => true,
        onPoll: async () => {
          at.push((clock.monotonicMs() - 1000) / minuteMs);
          return 'reached';
        },
      },
      stop.signal,
    );
    await clock.advance(0);
    clock.setWallTime(startMs + stepMs);
    for (let minute = 0; minute < 10; minute += 1) await clock.advance(minuteMs);
    stop.abort();
    await loop;
    return at;
  }

  it('polls within a minute after a step forward or back', async () => {
    assert.deepEqual(await pollsAfter(360 * minuteMs), [0, 1]);
    assert.deepEqual(await pollsAfter(-360 * minuteMs), [0, 1]);
  });

  it('does not poll because of a slewed clock, or before a Retry-After', async () => {
    assert.deepEqual(await pollsAfter(1000), [0]);
    const untilMs = startMs + 365 * minuteMs;
    assert.deepEqual((await pollsAfter(360 * minuteMs, untilMs)).slice(-1), [5]);
  });
});

describe('a stored Retry-After that is too far ahead', () => {
  const years = (): number => startMs + 10 * 365 * 24 * 60 * minuteMs;

  it('is ignored, because the clock was set back since', async () => {
    assert.deepEqual((await polls(1, { retryAfterUntilMs: years })).at, [0]);
    assert.deepEqual(gaps(await polls(3, { retryAfterUntilMs: years })).slice(1), [10]);
    const cron = { poll: { kind: 'cron', expression: '* * * * *' }, isAnythingActive: () => true } as const;
    assert.deepEqual((await polls(2, { ...cron, retryAfterUntilMs: years })).at, [1, 2]);
  });

  it('is limited to one interval, and never to less than five minutes', async () => {
    const interval = await polls(1, { retryAfterUntilMs: () => startMs + 10 * minuteMs });
    assert.ok(interval.at[0]! >= 10 && interval.at[0]! < 20, String(interval.at[0]));
    const short = { poll: { kind: 'every', everyMs: 5000 }, isAnythingActive: () => false } as const;
    const { at } = await polls(1, { ...short, retryAfterUntilMs: () => startMs + 5 * minuteMs });
    assert.ok(at[0]! >= 5 && at[0]! < 5.1, String(at[0]));
    assert.deepEqual(
      (await polls(1, { ...short, retryAfterUntilMs: () => startMs + 5.1 * minuteMs })).at,
      [0],
    );
  });
});

describe('cronTimeAfterNow', () => {
  const poll = { kind: 'cron', expression: '* * * * *' } as const;

  it('returns a later time than the last poll, also when the timer was early', () => {
    const next = cronTimeAfterNow(poll, Date.now());
    assert.equal(next % minuteMs, 0);
    assert.equal(cronTimeAfterNow(poll, next), next + minuteMs);
  });

  it('returns a time soon after the clock was set back', () => {
    const next = cronTimeAfterNow(poll, Date.now() + 86_400_000);
    assert.ok(next - Date.now() <= 2 * minuteMs);
  });

  it('uses the time zone of the configuration', () => {
    const next = cronTimeAfterNow(
      { kind: 'cron', expression: '30 5 * * *', timeZone: 'Asia/Kolkata' },
      Date.now(),
    );
    assert.equal(new Date(next).toISOString().slice(11, 16), '00:00');
  });
});
