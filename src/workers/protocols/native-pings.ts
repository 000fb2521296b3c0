// Pings to one native worker that announced that it answers them: an ack says nothing of a worker that was stopped since. Owns
// when a ping is sent and how long its answer may take; never closes the connection.
import type { Clock } from '../../platform/time/clock.js';

export interface Pings {
  /** Sends one ping after the other until the signal aborts; never rejects. */
  run(): Promise<void>;
  /** @returns false for an id that no ping had */
  answer(id: number): boolean;
}

export interface PingOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly signal: AbortSignal;
  readonly send: (id: number) => void;
  /** True while the worker is asked something else: then no ping is sent, and a silence is not reported. */
  readonly isBusy: () => boolean;
  /** Called once for a ping that was not answered in time; the next ping is sent only after its answer. */
  readonly onSilence: (reason: string) => void;
}

export const pingEveryMs = 60_000;
export const pongTimeoutMs = 30_000;

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
