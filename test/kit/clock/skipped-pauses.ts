// A clock for loops that pause between two polls of a real peer: pauses take no time, and the deadline of a request is a real
// minute, so that only the answers decide. It never ends a wait for an answer early.
import { type Clock, systemClock } from '../../../src/platform/time/clock.js';
import { type FakeClock, fakeClock } from './fake-clock.js';

/**
 * @param pauseMs a sleep of this length is a pause; each other one is a deadline
 * @param pause action of a pause; by default it advances the time of the clock
 */
export function skippedPauses(
  pauseMs: number,
  pause: (clock: FakeClock) => Promise<void> = (clock) => clock.advance(pauseMs),
): Clock {
  const clock = fakeClock({ nowMs: Date.now() });
  return {
    ...clock,
    sleep: (delayMs, signal) => (delayMs === pauseMs ? pause(clock) : systemClock.sleep(60_000, signal)),
  };
}
