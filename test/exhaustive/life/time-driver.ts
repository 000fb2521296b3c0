// Moves the virtual time: the clock jumps whenever no work is pending. Real work takes real time: responses of the server,
// programs, flushes. A job without such work waits for the clock, so the clock jumps while that job runs.
import { setTimeout as realSleep, setImmediate } from 'node:timers/promises';
import type { VirtualClock } from './virtual-clock.js';

/** The work that must end, or stall, before the clock jumps. */
export interface PendingWork {
  /** The number of the agent's jobs that have begun and not ended. */
  jobs(): number;
  /** The number of responses that the server is about to send. */
  answers(): number;
}

export interface TimeDriver {
  /** Advances the true time by `ms`, from timer to timer. */
  pass(ms: number): Promise<void>;
  /** Advances the time until the promise is settled. @throws Error after `maxRealMs` of real time */
  until<T>(promise: Promise<T>): Promise<T>;
}

/** A job without progress for this real time waits for the clock. */
const stallMs = 25;
const maxRealMs = 60_000;
/** After this many rounds of the event loop without work, the host counts as idle. */
const idleRounds = 3;

export function timeDriver(clock: VirtualClock, work: PendingWork): TimeDriver {
  const isReal = (): boolean =>
    work.answers() > 0 || process.getActiveResourcesInfo().includes('ProcessWrap');
  const waitUntilIdle = async (): Promise<void> => {
    const startedMs = performance.now();
    for (let still = 0, rounds = 0; still < idleRounds; rounds++) {
      await setImmediate();
      if (work.jobs() === 0 && work.answers() === 0) {
        still += 1;
        continue;
      }
      still = 0;
      if (rounds < 50) continue;
      const forMs = performance.now() - startedMs;
      if (forMs > (isReal() ? maxRealMs : stallMs)) return;
      await realSleep(1);
    }
  };
  return {
    pass: async (ms) => {
      const endMs = clock.trueMs() + ms;
      for (let woken = 'woken'; woken === 'woken'; ) {
        await waitUntilIdle();
        woken = clock.jump(endMs);
      }
      await waitUntilIdle();
    },
    until: async (promise) => {
      let isSettled = false;
      const settled = promise.finally(() => {
        isSettled = true;
      });
      settled.catch(() => undefined);
      const startedMs = performance.now();
      while (!isSettled) {
        await waitUntilIdle();
        // A response may still be in a socket.
        for (let rounds = 0; rounds < 20 && !isSettled; rounds++) await setImmediate();
        if (!isSettled) clock.jump(clock.trueMs() + 1000);
        if (performance.now() - startedMs > maxRealMs) throw new Error(`no end after ${maxRealMs} ms`);
      }
      return settled;
    },
  };
}
