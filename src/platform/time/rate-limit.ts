// Limits how fast a background job reads: a rate in bytes a second, and a run of the event loop in between. Owns only the waiting.
import { WritError } from '../../core/errors.js';
import { type Clock, yieldToEventLoop } from './clock.js';

export interface Pace {
  /**
   * Waits as long as the rate requires. Must be called after each read.
   * @throws WritError INTERRUPTED when the signal has aborted
   */
  spent(bytes: number): Promise<void>;
}

export interface ReadPaceOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly bytesPerSecond: number;
  readonly signal: AbortSignal;
}

/** About 10 ms of reading and digesting. */
const bytesPerPause = 8_000_000;
/** Sleeping for less costs more than it saves. */
const shortestSleepMs = 20;
/** After a pause, a job may catch up on at most this time. */
const maxCreditMs = 200;

/** @returns a pace that keeps the average rate */
export function boundedPace({ clock, bytesPerSecond, signal }: ReadPaceOptions): Pace {
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

/** @returns a pace without a rate, which only runs the event loop in between; for a job with a waiting caller */
export function unboundedPace(signal?: AbortSignal): Pace {
  let sincePause = 0;
  return {
    spent: async (bytes) => {
      sincePause += bytes;
      if (sincePause >= bytesPerPause) {
        sincePause = 0;
        await yieldToEventLoop();
      }
      if (signal?.aborted) throw new WritError('INTERRUPTED', 'the reading was interrupted');
    },
  };
}
