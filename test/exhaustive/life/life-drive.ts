// Lets time pass: the clock jumps whenever nobody is at work. What is real takes real time: answers of the server, programs,
// flushes; a job that waits for nothing of these waits for the clock, which then jumps under it.
import { setTimeout as realSleep, setImmediate } from 'node:timers/promises';
import type { LifeClock } from './life-clock.js';

/** Who is at work, and whether the clock may jump under it. */
export interface AtWork {
  /** Jobs of the agent that have begun and not ended. */
  jobs(): number;
  /** Answers that the server is about to give. */
  answers(): number;
}

export interface Drive {
  /** True time goes on by so much; the clock jumps from timer to timer. */
  pass(ms: number): Promise<void>;
  /** Time passes until the promise is settled. @throws Error when it is not in `maxRealMs` of real time */
  until<T>(promise: Promise<T>): Promise<T>;
}

/** A job that does nothing for so long in real time waits for the clock. */
const stallMs = 25;
const maxRealMs = 60_000;
/** Rounds of the event loop without work after which everything is said to be still. */
const stillRounds = 3;

export function lifeDrive(clock: LifeClock, work: AtWork): Drive {
  const isReal = (): boolean =>
    work.answers() > 0 || process.getActiveResourcesInfo().includes('ProcessWrap');
  const becomeStill = async (): Promise<void> => {
    const startedMs = performance.now();
    for (let still = 0, rounds = 0; still < stillRounds; rounds++) {
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
        await becomeStill();
        woken = clock.jump(endMs);
      }
      await becomeStill();
    },
    until: async (promise) => {
      let isSettled = false;
      const settled = promise.finally(() => {
        isSettled = true;
      });
      settled.catch(() => undefined);
      const startedMs = performance.now();
      while (!isSettled) {
        await becomeStill();
        // An answer may still be on its way through a socket.
        for (let rounds = 0; rounds < 20 && !isSettled; rounds++) await setImmediate();
        if (!isSettled) clock.jump(clock.trueMs() + 1000);
        if (performance.now() - startedMs > maxRealMs) throw new Error(`no end after ${maxRealMs} ms`);
      }
      return settled;
    },
  };
}
