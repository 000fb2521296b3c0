// Pings a watchdog for as long as somebody vouches for the work. Owns the rhythm: a timer of the event loop, so that a
// loop that hangs is silent by itself. Never judges the work.
import type { Clock } from '../time/clock.js';
import type { Notifier } from './sd-notify.js';

export interface WatchdogOptions {
  readonly notifier: Notifier;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Asked before each ping; silence is how a service manager learns that nobody works here any more. */
  readonly works: () => boolean;
  readonly signal: AbortSignal;
}

/** Resolves at the abort, or at once when nobody watches. */
export async function runWatchdog({ notifier, clock, works, signal }: WatchdogOptions): Promise<void> {
  const { watchdogMs } = notifier;
  if (watchdogMs === undefined) return;
  while (!signal.aborted) {
    if (works()) await notifier.notify(['WATCHDOG=1']);
    await clock.sleep(watchdogMs / 2, signal);
  }
}
