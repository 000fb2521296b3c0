// Whether a worker lives that may be away for a moment, as one that reloads or connects anew. Owns how often it is
// looked for; what a look sees is the driver's.
import type { Clock } from '../../platform/time/clock.js';
import type { Liveness } from './driver.js';

export interface Patience {
  readonly clock: Clock;
  /** How long one that lives may be away; 0 looks once. */
  readonly graceMs: number;
}

/** What is left of the time in which a worker that was notified may be away. */
export interface AnswerGrace {
  /** The worker is notified now. @param timeoutMs of its answer: as long as that it may take to be there again */
  notified(worker: string, timeoutMs: number): void;
  /** @returns milliseconds; `leastMs` for a worker that nobody has notified */
  leftMs(worker: string): number;
}

/** @param leastMs for who reloads by another's word */
export function createAnswerGrace(clock: Pick<Clock, 'monotonicMs'>, leastMs: number): AnswerGrace {
  const untilMs = new Map<string, number>();
  return {
    notified: (worker, timeoutMs) => {
      untilMs.set(worker, clock.monotonicMs() + timeoutMs);
    },
    leftMs: (worker) => Math.max(leastMs, (untilMs.get(worker) ?? 0) - clock.monotonicMs()),
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
