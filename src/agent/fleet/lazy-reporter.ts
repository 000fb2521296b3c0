// Loads the fleet reporter of a running agent when `fleet` is configured, so that a host without it needs no memory for it.
// Passes the events of the agent to the reporter.
import { once } from 'node:events';
import type { Problem } from '../../core/cycle/cycle-report.js';
import type { FleetStatus } from '../../core/status/status.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { AgentObserver } from '../report/observer.js';
import type { FleetReporter, ReporterOptions } from './reporter.js';

export interface LazyReporter {
  readonly observer: AgentObserver;
  /** Reports until a stop request; never rejects. */
  run(): Promise<void>;
  /** Must be called after the configuration was reloaded. */
  reloaded(): void;
  fleetStatus(): FleetStatus | undefined;
  problem(): Problem | undefined;
  sendFinalReport(): Promise<void>;
}

/**
 * @returns a reporter that is loaded when a cycle ends or `run` begins, if `fleet` is configured then. Before that it
 * has no status and no problem.
 */
export function createLazyReporter(options: ReporterOptions): LazyReporter {
  const { host, stop } = options;
  let changed = new AbortController();
  let loading: Promise<FleetReporter> | undefined;
  let reporter: FleetReporter | undefined;
  const load = (): Promise<FleetReporter> => {
    loading ??= import('./reporter.js').then(({ FleetReporter }) => {
      reporter = new FleetReporter(options);
      return reporter;
    });
    return loading;
  };
  const isWanted = (): boolean => host().config.fleet !== undefined;
  return {
    observer: {
      onStatus: () => reporter?.wake(),
      onCycle: (end) => {
        // A recovery ends before the reporter runs, and its outcome is recorded too.
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
    sendFinalReport: async () => reporter?.sendFinalReport(),
  };
}
