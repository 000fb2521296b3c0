// Repeats a round while the agent runs: for releases in their bake time, for contact with the server, and for the sandbox. Each round
// returns the time until the next one.
import { once } from 'node:events';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { Host } from '../state/host.js';
import { isStateVanished, vanishedGapMs } from './vanished-state.js';

export interface RoundLoop {
  /** Runs rounds until the agent ends; never rejects. */
  run(): Promise<void>;
  /** Starts the next round at once, because a release may have become active. */
  wake(): void;
}

/**
 * Creates the loop; `run` starts it. Throws nothing.
 * @param runRound resolves with the milliseconds until the next round; with undefined to wait for `wake`. It must not reject
 * @param options.host read before each round: while its state directory is vanished, the loop skips `runRound` and checks every
 *   5 s
 * @returns the loop. `run` resolves after `stop` aborts and the current round has ended. A `wake` during a round starts the next
 *   one without a delay
 */
export function createRoundLoop(
  runRound: () => Promise<number | undefined>,
  { host, stop }: { readonly host: () => Host; readonly stop: AbortSignal },
): RoundLoop {
  let waiting = new AbortController();
  return {
    run: async () => {
      while (!stop.aborted) {
        waiting = new AbortController();
        using sooner = joinSignals(stop, waiting.signal);
        const gapMs = isStateVanished(host()) ? vanishedGapMs : await runRound();
        if (gapMs !== undefined) await host().clock.sleep(gapMs, sooner.signal);
        else if (!sooner.signal.aborted) await once(sooner.signal, 'abort');
      }
    },
    wake: () => waiting.abort(),
  };
}
