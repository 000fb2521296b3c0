// Repeats the liveness check of a worker that may be absent for a moment, such as during a reload or a reconnect. The driver reads
// the liveness; this file decides how often.
import type { Clock } from '../../platform/time/clock.js';
import type { Driver, Liveness } from './driver.js';

export interface LivenessGrace {
  readonly clock: Clock;
  /** How long a running worker may be absent; 0: one check. */
  readonly graceMs: number;
}

/** The grace period in which a worker may be absent: one after each notification, and one after each time that it was alive. */
export interface AnswerGrace {
  /** Starts the grace period of a notification. @param timeoutMs of its answer, which is also the length of the period */
  notified(worker: string, timeoutMs: number): void;
  /** @returns as livenessWithin; a worker that was dead after its grace period has one check each time, until it is back */
  within(worker: string, readLiveness: () => Promise<Liveness>): Promise<Liveness>;
}

/**
 * @param leastMs grace period for a worker that reloads without a notification of this host
 * @returns grace periods without any notification. `notified` extends that of the worker to `timeoutMs` from now; `within`
 *   repeats the check every 50 ms while it is `dead`, and resolves with `alive`, `unknown`, or `dead` at the end of the period.
 *   It rejects only with an error of `readLiveness`.
 */
export function createAnswerGrace(clock: Clock, leastMs: number): AnswerGrace {
  const untilMs = new Map<string, number>();
  const dead = new Set<string>();
  const graceMs = (worker: string): number =>
    dead.has(worker) ? 0 : Math.max(leastMs, (untilMs.get(worker) ?? 0) - clock.monotonicMs());
  return {
    notified: (worker, timeoutMs) => {
      untilMs.set(worker, clock.monotonicMs() + timeoutMs);
      dead.delete(worker);
    },
    within: async (worker, readLiveness) => {
      const seen = await livenessWithin({ clock, graceMs: graceMs(worker) }, readLiveness);
      if (seen === 'dead') dead.add(worker);
      else dead.delete(worker);
      return seen;
    },
  };
}

const pollIntervalMs = 50;

/** @returns the first liveness that is not `dead`, or the one at the end of the grace period */
export async function livenessWithin(
  { clock, graceMs }: LivenessGrace,
  readLiveness: () => Promise<Liveness>,
): Promise<Liveness> {
  const endMs = clock.monotonicMs() + graceMs;
  for (;;) {
    const seen = await readLiveness();
    if (seen !== 'dead' || clock.monotonicMs() >= endMs) return seen;
    await clock.sleep(pollIntervalMs);
  }
}

/** @returns the text of a worker that answered and counts as dead afterwards */
export async function deadAnswerText(driver: Driver, worker: string, text: string): Promise<string> {
  const why = await findDeathHint(driver, worker);
  return why === undefined ? `answered, then died: ${text}` : deadText(why, text);
}

/** @returns the text of a worker that answered, although a missing file makes it count as dead */
export function deadText(why: string, text: string): string {
  return `counts as dead: ${why}; its answer was: ${text}`;
}

/** @returns why a worker counts as dead, if the configuration may be the cause, such as a missing pid file; otherwise undefined */
export async function findDeathHint(
  driver: Pick<Driver, 'process'>,
  worker: string,
): Promise<string | undefined> {
  const daemon = await driver.process?.(worker);
  if (daemon?.kind !== 'dead' || daemon.hint === undefined) return undefined;
  return `${daemon.reason}: ${daemon.hint}`;
}
