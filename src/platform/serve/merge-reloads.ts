// The wish to reload, however often it comes: one reload runs, and at most one waits, for whatever came while it did is seen by
// the next one. Owns the order alone; what a reload is, and what becomes of its failure, is the caller's.
import type { Clock } from '../time/clock.js';

export interface MergedReloads {
  /** Someone wishes it: now, or once more behind the one that runs. */
  request(): void;
}

/** Between two reloads requests are answered: who asks for a thousand of them gets ten a second. */
const pauseMs = 100;

/** @param reload never throws */
export function mergeReloads(reload: () => Promise<void>, clock: Pick<Clock, 'sleep'>): MergedReloads {
  let isWanted = false;
  let isRunning = false;
  const run = async (): Promise<void> => {
    isRunning = true;
    while (isWanted) {
      isWanted = false;
      await reload();
      await clock.sleep(pauseMs);
    }
    isRunning = false;
  };
  return {
    request: () => {
      isWanted = true;
      if (!isRunning) void run();
    },
  };
}
