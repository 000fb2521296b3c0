// Virtual time: a true time that only jumps, to the next timer of whoever sleeps, and a host's wall clock that may be wrong
// by any offset. Owns times and sleepers; when it is right to jump is life-drive's.
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../src/platform/time/clock.js';

export interface LifeClock extends Clock {
  /** Epoch milliseconds of the world, whatever the host's clock says. */
  trueMs(): number;
  /** The host's wall clock is wrong by so much from now on. */
  setWrongBy(offsetMs: number): void;
  sleeping(): number;
  /** Jumps to the next timer that is due by `endMs` of true time, or to `endMs`. @returns whether anybody woke */
  jump(endMs: number): 'woken' | 'nobody';
}

interface Sleeper {
  readonly dueMs: number;
  wake(): void;
}

export function lifeClock(startMs: number): LifeClock {
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
      for (const one of sleepers) if (first === undefined || one.dueMs < first.dueMs) first = one;
      if (first === undefined || first.dueMs > endMs) {
        nowMs = Math.max(nowMs, endMs);
        return 'nobody';
      }
      nowMs = Math.max(nowMs, first.dueMs);
      first.wake();
      return 'woken';
    },
  };
}
