// The only access to time. Every function that needs the time gets a Clock, so that a test can inject one; no other file calls
// Date.now, setTimeout or performance.now.
import { uptime } from 'node:os';

export interface Clock {
  /** Wall time, epoch milliseconds. */
  nowMs(): number;
  /** Monotonic time in milliseconds, for durations. */
  monotonicMs(): number;
  /** Like monotonicMs, but includes the time in which the machine is suspended (CLOCK_BOOTTIME). */
  bootMs(): number;
  /** Resolves after delayMs, or at once when the signal aborts (it never rejects). */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Longest delay of a timer in Node, which has 32 bits: a longer one would end at once. */
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
 * Runs the event loop once, so that sockets, signals and timers are served during long work. Not in Clock, because it does not
 * depend on time.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
