// Answers requests that arrive at about the same time by one query: its result, also a failure, is valid for a short time, and a
// caller waits for it at most for a bound. So a flood of requests costs one query, also where the store hangs.
import { WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';

export interface CacheTimes {
  /** How long a result or a failure is valid, from its end. */
  readonly forMs: number;
  /** How long a caller waits for a query that runs. */
  readonly waitMs: number;
}

/**
 * @returns a function that runs the query, or for forMs after its end returns or throws the result of the last one; callers
 *   during a query wait for it
 * @throws FLEET_STORE_UNREACHABLE where the query takes longer than `waitMs`; it continues, and the next caller waits for it
 */
export function cacheAnswer<T>(
  clock: Clock,
  { forMs, waitMs }: CacheTimes,
  query: () => Promise<T>,
): () => Promise<T> {
  let last: { readonly answer: Promise<T>; untilMs: number } | undefined;
  return async () => {
    if (last === undefined || clock.monotonicMs() >= last.untilMs) {
      const begun = { answer: query(), untilMs: Number.POSITIVE_INFINITY };
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
    // After an answer in time nothing awaits this promise.
    late.catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      settled.abort();
    }
  };
}
