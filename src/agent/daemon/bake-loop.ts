// Takes a turn again and again, as long as the agent runs: for the releases in their bake time, and for contact with the server.
// Owns when.
import { once } from 'node:events';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { Host } from '../state/host.js';
import { isStateVanished, vanishedGapMs } from './vanished-state.js';

export interface TurnLoop {
  /** Takes turns until the agent ends; never rejects. */
  run(): Promise<void>;
  /** The next turn comes at once: a release may have become active. */
  wake(): void;
}

/** @param turn resolves with the milliseconds until the next one, or undefined where that waits for `wake`; never rejects */
export function createTurnLoop(
  turn: () => Promise<number | undefined>,
  { host, stop }: { readonly host: () => Host; readonly stop: AbortSignal },
): TurnLoop {
  let waiting = new AbortController();
  return {
    run: async () => {
      while (!stop.aborted) {
        waiting = new AbortController();
        using sooner = joinSignals(stop, waiting.signal);
        const gapMs = isStateVanished(host()) ? vanishedGapMs : await turn();
        if (gapMs !== undefined) await host().clock.sleep(gapMs, sooner.signal);
        else if (!sooner.signal.aborted) await once(sooner.signal, 'abort');
      }
    },
    wake: () => waiting.abort(),
  };
}
