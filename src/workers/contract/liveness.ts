// Whether a worker lives that may be away for a moment, as one that reloads or connects again. Owns how often it is
// looked for; what a look sees is the driver's.
import type { Clock } from '../../platform/time/clock.js';
import type { Driver, Liveness } from './driver.js';

export interface Patience {
  readonly clock: Clock;
  /** How long one that lives may be away; 0 looks once. */
  readonly graceMs: number;
}

/** The time in which a worker may be away: once for each notification, and once for each time that it was there. */
export interface AnswerGrace {
  /** The worker is notified now. @param timeoutMs of its answer: as long as that it may take to be there again */
  notified(worker: string, timeoutMs: number): void;
  /** @returns as livenessWithin; one that was dead at the end of its grace is looked for once, until it is back */
  within(worker: string, look: () => Promise<Liveness>): Promise<Liveness>;
}

/** @param leastMs for who reloads by another's word */
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
    within: async (worker, look) => {
      const seen = await livenessWithin({ clock, graceMs: graceMs(worker) }, look);
      if (seen === 'dead') dead.add(worker);
      else dead.delete(worker);
      return seen;
    },
  };
}

const lookAgainMs = 50;

/** @returns what the last look saw: the first that is not `dead`, or the one at the end of the grace */
export async function livenessWithin(
  { clock, graceMs }: Patience,
  look: () => Promise<Liveness>,
): Promise<Liveness> {
  const endMs = clock.monotonicMs() + graceMs;
  for (;;) {
    const seen = await look();
    if (seen !== 'dead' || clock.monotonicMs() >= endMs) return seen;
    await clock.sleep(lookAgainMs);
  }
}

/** @returns the text of a worker that answered and counts as dead afterwards */
export async function deadAnswerText(driver: Driver, worker: string, text: string): Promise<string> {
  const why = await findDeathHint(driver, worker);
  return why === undefined ? `answered, then died: ${text}` : deadText(why, text);
}

/** @returns the text of a worker that answered, though a missing file makes it count as dead */
export function deadText(why: string, text: string): string {
  return `counts as dead: ${why}; its answer was: ${text}`;
}

/** @returns why a worker counts as dead, where the configuration may be the cause, as a pid file that does not exist */
export async function findDeathHint(
  driver: Pick<Driver, 'process'>,
  worker: string,
): Promise<string | undefined> {
  const daemon = await driver.process?.(worker);
  if (daemon?.kind !== 'dead' || daemon.hint === undefined) return undefined;
  return `${daemon.reason}: ${daemon.hint}`;
}
