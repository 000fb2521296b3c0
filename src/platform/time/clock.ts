// The door to time. Everything that needs the time gets a Clock, so that a test can inject one; nothing else
// in Writ calls Date.now, setTimeout or performance.now.
import { uptime } from 'node:os';

export interface Clock {
  /** Wall time, epoch milliseconds. */
  nowMs(): number;
  /** Monotonic time in milliseconds, for durations. */
  monotonicMs(): number;
  /** As monotonicMs, and it also counts while the machine is suspended (CLOCK_BOOTTIME). */
  bootMs(): number;
  /** Resolves after delayMs, or at once when the signal aborts (it never rejects). */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Timers of Node count in 32 bits: a longer delay would fire at once. */
export const maxTimerMs = 2_147_483_647;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  // The first number of /proc/uptime.
  bootMs: () => uptime() * 1000,
  sleep: (delayMs, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(Math.max(delayMs, 0), maxTimerMs));
      signal?.addEventListener('abort', done, { once: true });
    }),
};

/**
 * Lets the event loop go round once: sockets, signals and timers get their turn amid long work.
 * No time passes by it, so it is no part of Clock.
 */
export function letOthersRun(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
