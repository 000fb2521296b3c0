// Virtual time: a true time that jumps from timer to timer, and a host's wall clock that is wrong by any offset. Owns the
// times and the sleepers. timeDriver (time-driver.ts) decides when the clock may jump.
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../src/platform/time/clock.js';

export interface VirtualClock extends Clock {
  /** The true time in epoch milliseconds, without the error of the host's clock. */
  trueMs(): number;
  /** From now on the host's wall clock differs from the true time by `offsetMs`. */
  setWrongBy(offsetMs: number): void;
  /** The number of callers that sleep. */
  sleeping(): number;
  /**
   * Jumps to the next timer that is due by `endMs` of true time and wakes its sleeper, or jumps to `endMs`.
   * @returns `none` when no timer was due
   */
  jump(endMs: number): 'woken' | 'none';
}

interface Sleeper {
  readonly dueMs: number;
  wake(): void;
}

export function virtualClock(startMs: number): VirtualClock {
  let nowMs = startMs;
  let wrongByMs = 0;
  const sleepers = new Set<Sleeper>();
  const wait = (delayMs: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const sleeper = {
        dueMs: nowMs + delayMs,
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
    nowMs: () => nowMs + wrongByMs,
    monotonicMs: () => nowMs - startMs + 1000,
    bootMs: () => nowMs - startMs + 1000,
    trueMs: () => nowMs,
    setWrongBy: (offsetMs) => {
      wrongByMs = offsetMs;
    },
    sleeping: () => sleepers.size,
    sleep: async (delayMs, signal) => {
      if (signal?.aborted) return;
      if (delayMs > 0) await wait(delayMs, signal);
      await setImmediate();
    },
    jump: (endMs) => {
      let first: Sleeper | undefined;
      for (const sleeper of sleepers) if (first === undefined || sleeper.dueMs < first.dueMs) first = sleeper;
      if (first === undefined || first.dueMs > endMs) {
        nowMs = Math.max(nowMs, endMs);
        return 'none';
      }
      nowMs = Math.max(nowMs, first.dueMs);
      first.wake();
      return 'woken';
    },
  };
}
