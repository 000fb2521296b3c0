// Logs refused requests: one line per code and minute, without a stack, and the number of further ones. Without this limit a client
// could fill the disk. The socket decides which requests are refused.
import { toWritError } from '../../core/errors.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';

export interface RefusedRequests {
  /** Logs an INTERNAL error with its stack, under the same limit. */
  note(error: unknown): void;
}

/** The interval between two lines with the same code. */
export const refusalsEveryMs = 60_000;

export interface RefusedRequestsOptions {
  readonly log: Logger;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Aborts when the socket closes. */
  readonly closed: AbortSignal;
}

/** @returns a log without counted requests. Its counting ends when the socket closes. */
export function createRefusedRequests({ log, clock, closed }: RefusedRequestsOptions): RefusedRequests {
  const unreported = new Map<string, number>();
  const countAfter = async (code: string): Promise<void> => {
    for (;;) {
      await clock.sleep(refusalsEveryMs, closed);
      const more = unreported.get(code) ?? 0;
      if (more === 0 || closed.aborted) break;
      unreported.set(code, 0);
      log.warn({ code, more }, `${more} more requests were refused`);
    }
    unreported.delete(code);
  };
  return {
    note: (thrown) => {
      const error = toWritError(thrown);
      const { code } = error;
      const before = unreported.get(code);
      unreported.set(code, before === undefined ? 0 : before + 1);
      if (before !== undefined) return;
      const why = code === 'INTERNAL' ? { err: error } : { code, reason: error.message };
      log.warn(why, 'a request on a socket of the agent was refused');
      void countAfter(code);
    },
  };
}
