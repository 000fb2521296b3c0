// Pings one native worker that announced support for pings, because an earlier ack does not prove that the worker still runs. Owns the
// interval and the deadline of a ping. Never closes the connection.
import type { Clock } from '../../platform/time/clock.js';

export interface Pings {
  /** Sends pings, one at a time, until the signal aborts. Never rejects. */
  run(): Promise<void>;
  /** @returns false for an id that no ping has */
  answer(id: number): boolean;
}

export interface PingOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly signal: AbortSignal;
  readonly send: (id: number) => void;
  /** True while a notification waits for its answer. Then no ping is sent, and no timeout is reported. */
  readonly isBusy: () => boolean;
  /** Called once for a ping without an answer in time. The next ping is sent only after this answer. */
  readonly onSilence: (reason: string) => void;
}

export const pingEveryMs = 60_000;
export const pongTimeoutMs = 30_000;

/**
 * @returns the pings of one connection, with ids from 1. None is sent while the worker is busy or has not answered the
 * last one.
 */
export function createPings({ clock, signal, send, isBusy, onSilence }: PingOptions): Pings {
  let sent = 0;
  let answered = 0;
  return {
    run: async () => {
      let reported = 0;
      while (!signal.aborted) {
        await clock.sleep(pingEveryMs - pongTimeoutMs, signal);
        if (signal.aborted) return;
        if (answered === sent && !isBusy()) {
          sent += 1;
          send(sent);
        }
        await clock.sleep(pongTimeoutMs, signal);
        const isSilent = answered < sent && reported < sent && !isBusy() && !signal.aborted;
        if (!isSilent) continue;
        reported = sent;
        onSilence(`it is connected, and did not answer a ping for ${pongTimeoutMs / 1000} s`);
      }
    },
    answer: (id) => {
      if (id > sent) return false;
      answered = Math.max(answered, id);
      return true;
    },
  };
}
