// A common timeout for several requests: aborts their signal when the time is over or the caller aborts.
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';

/**
 * Calls `act` with a signal that aborts after `timeMs` milliseconds or when `ended` aborts. Waits for the end of `act`
 * also then.
 * @returns the result of `act`, which decides how it ends after the abort.
 * @throws the error of `act`
 */
export async function withinTime<T>(
  clock: Clock,
  timeMs: number,
  act: (signal: AbortSignal) => Promise<T>,
  ended?: AbortSignal,
): Promise<T> {
  const [done, late] = [new AbortController(), new AbortController()];
  void clock.sleep(timeMs, done.signal).then(() => late.abort());
  using signal = joinSignals(late.signal, ended);
  try {
    return await act(signal.signal);
  } finally {
    done.abort();
  }
}
