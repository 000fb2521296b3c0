// Whether a worker lives that may be away for a moment, as one that reloads or connects anew. Owns how often it is
// looked for; what a look sees is the driver's.
import type { Clock } from '../../platform/time/clock.js';
import type { Liveness } from './driver.js';

export interface Patience {
  readonly clock: Clock;
  /** How long one that lives may be away; 0 looks once. */
  readonly graceMs: number;
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
