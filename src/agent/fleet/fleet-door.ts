// The reporter of a running agent, loaded when `fleet` is configured, and not before: a host without it pays nothing. Owns
// that, and what of an agent the reporter hears of.
import { once } from 'node:events';
import type { Problem } from '../../core/cycle/cycle-report.js';
import type { FleetStatus } from '../../core/status/status.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { AgentObserver } from '../report/observer.js';
import type { Reporter, ReporterOptions } from './reporter.js';

export interface FleetDoor {
  readonly observer: AgentObserver;
  /** Reports until the agent is told to end; never rejects. */
  run(): Promise<void>;
  /** The configuration is another one. */
  reloaded(): void;
  fleetStatus(): FleetStatus | undefined;
  problem(): Problem | undefined;
  lastWord(): Promise<void>;
}

export function createFleetDoor(options: ReporterOptions): FleetDoor {
  const { host, stop } = options;
  let changed = new AbortController();
  let loading: Promise<Reporter> | undefined;
  let reporter: Reporter | undefined;
  const load = (): Promise<Reporter> => {
    loading ??= import('./reporter.js').then(({ Reporter }) => {
      reporter = new Reporter(options);
      return reporter;
    });
    return loading;
  };
  const isWanted = (): boolean => host().config.fleet !== undefined;
  return {
    observer: {
      onStatus: () => reporter?.look(),
      onCycle: (end) => {
        // Also of a recovery, before anything runs.
        if (isWanted()) void load().then((one) => one.noteEnd(end));
      },
    },
    run: async () => {
      while (!isWanted() && !stop.aborted) {
        changed = new AbortController();
        using sooner = joinSignals(stop, changed.signal);
        if (!sooner.signal.aborted) await once(sooner.signal, 'abort');
      }
      if (!stop.aborted) await (await load()).run();
    },
    reloaded: () => {
      changed.abort();
      reporter?.reloaded();
    },
    fleetStatus: () => reporter?.status(),
    problem: () => (isWanted() ? reporter?.problem() : undefined),
    lastWord: async () => reporter?.lastWord(),
  };
}
