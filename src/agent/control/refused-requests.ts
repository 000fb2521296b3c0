// What the log says of requests that were refused: whoever may connect could fill a disk with them. One line a code and
// minute, without a stack, and how many more there were. Owns the counting; who is refused is the socket's.
import { toWritError } from '../../core/errors.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';

export interface RefusedRequests {
  /** A fault of ours is said with its stack, but no more often than the rest. */
  note(error: unknown): void;
}

/** For one code. */
export const refusalsEveryMs = 60_000;

export interface RefusedRequestsOptions {
  readonly log: Logger;
  readonly clock: Pick<Clock, 'sleep'>;
  /** The socket closes. */
  readonly closed: AbortSignal;
}

export function createRefusedRequests({ log, clock, closed }: RefusedRequestsOptions): RefusedRequests {
  const unsaid = new Map<string, number>();
  const countAfter = async (code: string): Promise<void> => {
    for (;;) {
      await clock.sleep(refusalsEveryMs, closed);
      const more = unsaid.get(code) ?? 0;
      if (more === 0 || closed.aborted) break;
      unsaid.set(code, 0);
      log.warn({ code, more }, `${more} more requests were refused`);
    }
    unsaid.delete(code);
  };
  return {
    note: (thrown) => {
      const error = toWritError(thrown);
      const { code } = error;
      const before = unsaid.get(code);
      unsaid.set(code, before === undefined ? 0 : before + 1);
      if (before !== undefined) return;
      const why = code === 'INTERNAL' ? { err: error } : { code, reason: error.message };
      log.warn(why, 'a request on a socket of the agent was refused');
      void countAfter(code);
    },
  };
}
