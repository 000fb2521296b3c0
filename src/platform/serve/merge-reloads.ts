// Merges requests to reload: one reload runs, and at most one waits, because it covers all requests during the first. Owns only the
// order; the caller handles failures.
import type { Clock } from '../time/clock.js';

export interface MergedReloads {
  /** Starts a reload now, or one more after the running one. */
  request(): void;
}

/** Pause between two reloads, in which requests are answered: at most ten reloads a second. */
const pauseMs = 100;

/**
 * Creates a runner of reloads: one at a time, 100 ms apart, requests during a reload joined into one more.
 * @param reload never throws; it is not called before the first request
 * @returns `request` starts the first reload before it returns, and does not wait for its end. Example: three requests during
 *   one reload cause exactly one more.
 */
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
