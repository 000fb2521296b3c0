// The polls of a running agent, from configuration to configuration. Owns which loop runs and when the next poll is; the
// times are poll-loop's, and what a poll does is the cycle runner's.
import { joinSignals } from '../../platform/time/join-signals.js';
import { type CycleRunner, pullUnlessStopping } from '../cycle/cycle-runner.js';
import { type ContactKeeper, isUnreached } from '../freshness/contact-memory.js';
import type { Host } from '../state/host.js';
import { cronTimeAfterNow, type PollLoopOptions, runPollLoop } from './poll-loop.js';

export interface PollerOptions extends Pick<PollLoopOptions, 'random01'> {
  /** Asked for each loop: a reload may have replaced it. */
  readonly host: () => Host;
  readonly contact: ContactKeeper;
  readonly anythingActive: () => PollLoopOptions['anythingActive'];
  readonly stop: AbortSignal;
}

export interface Poller {
  /** Polls until the agent is told to end; the first poll says that it is the one of the start. */
  run(runner: Pick<CycleRunner, 'pull'>): Promise<void>;
  /** Epoch milliseconds; undefined before the first poll has its time. */
  nextAtMs(): number | undefined;
  /** The configuration is another one: so are the times. */
  reloaded(): void;
}

export function createPoller(options: PollerOptions): Poller {
  const { stop } = options;
  let polling = new AbortController();
  let nextAtMs: number | undefined;
  return {
    run: async (runner) => {
      let trigger: 'start' | 'poll' = 'start';
      const onPoll = async (): Promise<'reached' | 'failed'> => {
        const result = await pullUnlessStopping(runner, trigger);
        trigger = 'poll';
        return result === undefined || isUnreached(result) ? 'failed' : 'reached';
      };
      const onScheduled = (atMs: number): void => {
        nextAtMs = atMs;
      };
      while (!stop.aborted) {
        polling = new AbortController();
        const loop = { ...loopOf(options), onPoll, onScheduled };
        using ending = joinSignals(stop, polling.signal);
        await runPollLoop(loop, ending.signal);
      }
    },
    nextAtMs: () => nextAtMs,
    reloaded: () => polling.abort(),
  };
}

function loopOf(options: PollerOptions): Omit<PollLoopOptions, 'onPoll' | 'onScheduled'> {
  const { config, clock, ledger } = options.host();
  const lastSuccessMs = options.contact.read().contact.verifiedAtMs;
  return {
    poll: config.poll,
    hostId: config.host.id,
    clock,
    random01: options.random01,
    nextCronTime: cronTimeAfterNow,
    retryAfterUntilMs: () => ledger.read().retryAfterUntilMs,
    anythingActive: options.anythingActive(),
    ...(lastSuccessMs === undefined ? {} : { lastSuccessMs }),
  };
}
