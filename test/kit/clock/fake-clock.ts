// A virtual clock: wall time, monotonic time and sleeps, which only a test advances.
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../src/platform/time/clock.js';

export interface FakeClock extends Clock {
  /** Advances both times and ends, in order of time, each sleep that is over. */
  advance(byMs: number): Promise<void>;
  /** Suspends the machine: wall time and boot time advance, monotonic time does not. */
  suspend(forMs: number): void;
  /** Sets wall time only, as `date -s` does. */
  setWallTime(nowMs: number): void;
  /** Requested sleeps so far, in milliseconds. */
  readonly sleeps: readonly number[];
  /** Number of current sleeps. */
  sleeping(): number;
}

export interface FakeClockOptions {
  /** Epoch milliseconds at the start; 2026-11-01 by default. */
  readonly nowMs?: number;
  /** `manual`: sleeps wait for advance(). `skip`: a sleep advances the time itself and ends at once. */
  readonly mode?: 'manual' | 'skip';
}

interface Sleeper {
  readonly dueMs: number;
  wake(): void;
}

/** @example const clock = fakeClock(); const poll = loop(clock); await clock.advance(300_000); */
export function fakeClock(options: FakeClockOptions = {}): FakeClock {
  let wallMs = options.nowMs ?? Date.UTC(2026, 10, 1);
  let monotonicMs = 1000;
  let suspendedMs = 0;
  const sleeps: number[] = [];
  const sleepers = new Set<Sleeper>();
  const move = (byMs: number): void => {
    wallMs += byMs;
    monotonicMs += byMs;
  };
  const wait = (delayMs: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const sleeper = {
        dueMs: monotonicMs + delayMs,
        wake: () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', sleeper.wake);
          resolve();
        },
      };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', sleeper.wake, { once: true });
    });

  return {
    nowMs: () => wallMs,
    monotonicMs: () => monotonicMs,
    bootMs: () => monotonicMs + suspendedMs,
    suspend: (forMs) => {
      wallMs += forMs;
      suspendedMs += forMs;
    },
    sleep: async (delayMs, signal) => {
      sleeps.push(delayMs);
      if (signal?.aborted) return;
      if (options.mode === 'skip') move(Math.max(delayMs, 0));
      else if (delayMs > 0) await wait(delayMs, signal);
      // A sleep yields, so that the rest of the process runs as with a real clock.
      await setImmediate();
    },
    advance: async (byMs) => {
      const endMs = monotonicMs + byMs;
      for (;;) {
        const [first] = [...sleepers].filter((one) => one.dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs);
        if (first === undefined) break;
        move(Math.max(first.dueMs - monotonicMs, 0));
        first.wake();
        await setImmediate();
        await setImmediate();
      }
      move(endMs - monotonicMs);
      await setImmediate();
    },
    setWallTime: (nowMs) => {
      wallMs = nowMs;
    },
    sleeps,
    sleeping: () => sleepers.size,
  };
}
