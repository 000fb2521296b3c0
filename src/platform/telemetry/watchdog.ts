// Pings a watchdog while the caller confirms that the work continues. Owns the interval: a timer of the event loop, so that a blocked
// loop sends no ping. Does not judge the work.
import type { Clock } from '../time/clock.js';
import type { Notifier } from './sd-notify.js';

export interface WatchdogOptions {
  readonly notifier: Notifier;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Called before each ping. Without a ping the service manager restarts the process. */
  readonly works: () => boolean;
  readonly signal: AbortSignal;
}

/** Resolves at the abort, or at once without a watchdog. */
export async function runWatchdog({ notifier, clock, works, signal }: WatchdogOptions): Promise<void> {
  const { watchdogMs } = notifier;
  if (watchdogMs === undefined) return;
  while (!signal.aborted) {
    if (works()) await notifier.notify(['WATCHDOG=1']);
    await clock.sleep(watchdogMs / 2, signal);
  }
}
