// How fast a job in the background may read: so many bytes a second, and a turn for everybody else in between. Owns the
// waiting alone; what is read is the caller's.
import { WritError } from '../../core/errors.js';
import { type Clock, letOthersRun } from './clock.js';

export interface Pace {
  /**
   * Called after each read.
   * @throws WritError INTERRUPTED when the signal has aborted
   */
  spent(bytes: number): Promise<void>;
}

export interface PaceOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly bytesPerSecond: number;
  readonly signal: AbortSignal;
}

/** About 10 ms of reading and digesting. */
const bytesPerPause = 8_000_000;
/** Sleeping for less costs more than it saves. */
const shortestSleepMs = 20;
/** After time without a read nobody may make up for more than this. */
const maxCreditMs = 200;

/** @returns a pace that holds the average at the rate, from read to read */
export function boundedPace({ clock, bytesPerSecond, signal }: PaceOptions): Pace {
  const others = unboundedPace(signal);
  let dueMs = clock.monotonicMs();
  return {
    spent: async (bytes) => {
      dueMs = Math.max(dueMs, clock.monotonicMs() - maxCreditMs) + (bytes / bytesPerSecond) * 1000;
      const waitMs = dueMs - clock.monotonicMs();
      if (waitMs >= shortestSleepMs) await clock.sleep(waitMs, signal);
      await others.spent(bytes);
    },
  };
}

/** @returns a pace that only lets others run: for whoever waits for the answer */
export function unboundedPace(signal?: AbortSignal): Pace {
  let sincePause = 0;
  return {
    spent: async (bytes) => {
      sincePause += bytes;
      if (sincePause >= bytesPerPause) {
        sincePause = 0;
        await letOthersRun();
      }
      if (signal?.aborted) throw new WritError('INTERRUPTED', 'the reading was interrupted');
    },
  };
}
