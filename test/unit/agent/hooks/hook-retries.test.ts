import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type RetryOptions, retryHook } from '../../../../src/agent/hooks/run-hook.js';
import type { HookVerdict, HookVerdictKind } from '../../../../src/core/cycle/hook-verdict.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';

interface Tried {
  readonly last: HookVerdictKind;
  /** The timeout of each attempt. */
  readonly timeoutsMs: readonly number[];
  readonly clock: FakeClock;
}

interface Asked extends Partial<RetryOptions> {
  readonly retry?: number;
  /** The duration of each attempt. */
  readonly takesMs?: number;
  readonly onTry?: () => void;
}

/** The ends of the attempts, in order; the last one is also that of all further attempts. */
async function tries(ends: readonly HookVerdictKind[], asked: Asked = {}): Promise<Tried> {
  const { retry, takesMs = 0, onTry, ...options } = asked;
  const clock = fakeClock({ mode: 'skip' });
  const timeoutsMs: number[] = [];
  const hook = { run: ['ask'] as [string], timeoutMs: 10_000, ...(retry === undefined ? {} : { retry }) };
  const report = await retryHook(hook, { clock, ...options }, async ({ timeoutMs }) => {
    const kind = ends[Math.min(timeoutsMs.length, ends.length - 1)] ?? 'broken';
    timeoutsMs.push(timeoutMs);
    onTry?.();
    await clock.sleep(takesMs);
    const verdict: HookVerdict = { kind, reason: kind };
    return { verdict, text: '', durationMs: takesMs };
  });
  return { last: report.verdict.kind, timeoutsMs, clock };
}

describe('retryHook', () => {
  it('runs a command once without retry', async () => {
    const { last, timeoutsMs } = await tries(['broken', 'ok']);
    assert.deepEqual([last, timeoutsMs.length], ['broken', 1]);
  });

  it('repeats every half second until a verdict', async () => {
    const { last, timeoutsMs, clock } = await tries(['broken', 'broken', 'ok', 'refused'], { retry: 5 });
    assert.deepEqual([last, timeoutsMs.length], ['ok', 3]);
    assert.deepEqual(
      clock.sleeps.filter((ms) => ms > 0),
      [500, 500],
    );
  });

  it('stops after `retry` attempts and returns the last report', async () => {
    const { last, timeoutsMs } = await tries(['broken'], { retry: 2 });
    assert.deepEqual([last, timeoutsMs.length], ['broken', 3]);
  });

  for (const kind of ['ok', 'warned', 'refused', 'deferred'] as const) {
    it(`does not repeat after an answer: ${kind}`, async () => {
      assert.equal((await tries([kind], { retry: 5 })).timeoutsMs.length, 1);
    });
  }

  it('stops when the agent ends', async () => {
    const ending = new AbortController();
    const { timeoutsMs } = await tries(['broken'], {
      retry: 9,
      signal: ending.signal,
      onTry: () => ending.abort(),
    });
    assert.equal(timeoutsMs.length, 1);
  });
});
