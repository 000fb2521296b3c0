// Gives the releases in their bake time a turn again and again, as long as the agent runs. Owns when.
import { joinSignals } from '../../platform/time/join-signals.js';
import { type BakeTurnOptions, createBakeTurn } from '../bake/bake-turn.js';

export interface BakeWatcher {
  /** Takes turns until the agent ends; never rejects. */
  run(): Promise<void>;
  /** The next turn comes at once: a release may have become active. */
  wake(): void;
}

export function createBakeWatcher(options: BakeTurnOptions): BakeWatcher {
  const { host, stop } = options;
  const turn = createBakeTurn(options);
  let waiting = new AbortController();
  return {
    run: async () => {
      while (!stop.aborted) {
        waiting = new AbortController();
        using sooner = joinSignals(stop, waiting.signal);
        const gapMs = await turn();
        await host().clock.sleep(gapMs, sooner.signal);
      }
    },
    wake: () => waiting.abort(),
  };
}
