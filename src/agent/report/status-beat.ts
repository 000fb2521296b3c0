// Rewrites status.json at a fixed interval while an agent runs, so that a reader without access to the socket can infer from the age of
// the file whether an agent runs.
import type { Clock } from '../../platform/time/clock.js';

/** Readers treat the file as stale after three missed intervals. */
export const beatEveryMs = 60_000;

export interface BeatOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly stop: AbortSignal;
  readonly write: () => void;
}

/** Calls `write` each minute, beside the jobs, because a check may take an hour. @returns after the stop signal */
export async function beatUntilStopped({ clock, stop, write }: BeatOptions): Promise<void> {
  while (!stop.aborted) {
    await clock.sleep(beatEveryMs, stop);
    if (!stop.aborted) write();
  }
}
