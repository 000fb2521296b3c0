// Writes status.json again while an agent runs, whether or not there is news: who reads it without asking the agent knows by
// its age whether one is there. Owns how often.
import type { Clock } from '../../platform/time/clock.js';

/** Three of them missed, and nobody vouches for what the file says. */
export const beatEveryMs = 60_000;

export interface BeatOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly stop: AbortSignal;
  readonly write: () => void;
}

/** Apart from the jobs: a check may take an hour. @returns when the agent is told to end */
export async function beatUntilStopped({ clock, stop, write }: BeatOptions): Promise<void> {
  while (!stop.aborted) {
    await clock.sleep(beatEveryMs, stop);
    if (!stop.aborted) write();
  }
}
