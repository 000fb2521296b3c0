// One look for all who ask at about the same time: an answer holds for a moment, a failure too, and nobody waits for one longer than
// a bound. So a flood of questions costs one look, and a store that hangs has one question to answer. Owns no question.
import { WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';

export interface RememberedFor {
  /** From the answer, or the failure, on. */
  readonly forMs: number;
  /** How long one who asks waits for a look under way. */
  readonly waitMs: number;
}

/**
 * @returns asks, or gives what the last look answered or threw
 * @throws FLEET_STORE_UNREACHABLE where the look takes longer than `waitMs`; it goes on, and the next one waits for the same
 */
export function remembered<T>(
  clock: Clock,
  { forMs, waitMs }: RememberedFor,
  look: () => Promise<T>,
): () => Promise<T> {
  let last: { readonly answer: Promise<T>; untilMs: number } | undefined;
  return async () => {
    if (last === undefined || clock.monotonicMs() >= last.untilMs) {
      const begun = { answer: look(), untilMs: Number.POSITIVE_INFINITY };
      const ended = (): void => {
        begun.untilMs = clock.monotonicMs() + forMs;
      };
      begun.answer.then(ended, ended);
      last = begun;
    }
    const { answer } = last;
    const settled = new AbortController();
    const late = clock.sleep(waitMs, settled.signal).then((): never => {
      throw new WritError('FLEET_STORE_UNREACHABLE', `no answer in ${waitMs} ms`, {
        facts: { expected: waitMs },
      });
    });
    // Who was answered in time leaves it behind.
    late.catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      settled.abort();
    }
  };
}
