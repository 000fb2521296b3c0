// A clock for loops that pause between two looks at a real peer: pauses take no time, and deadlines of a question to the peer
// are a real minute, so that answers alone decide. Owns what a pause does; never ends a wait for an answer early.
import { type Clock, systemClock } from '../../../src/platform/time/clock.js';
import { type FakeClock, fakeClock } from './fake-clock.js';

/**
 * @param pauseMs every sleep of this length is a pause; every other one is a deadline
 * @param pause what happens in a pause; left out: the time of the clock moves on by it
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
