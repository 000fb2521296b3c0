// Opens and closes the configured monitoring: metrics and the events file. If one cannot be opened, or other users can change its
// directory, the log and a problem report that and the agent runs without it, because policy must not depend on monitoring.
import { dirname } from 'node:path';
import type { AgentConfig } from '../../core/config/config.js';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isWritError } from '../../core/errors.js';
import { createDurableFs, type DurableFs } from '../../platform/disk/durable-fs.js';
import { requireSafePathOrParent } from '../../platform/disk/safe-path.js';
import type { HostOptions } from '../state/host.js';
import { createEventsFile } from './events.js';
import type { AgentObserver } from './observer.js';

export interface Watchers extends AsyncDisposable {
  readonly observers: readonly AgentObserver[];
  /** A problem for each that is left out until a restart. */
  readonly problems: readonly Problem[];
}

/**
 * Opens the events file and the metrics. An address in use or a wrong path becomes a problem and no exception.
 * @returns the observers of what could be opened, and a problem for each other part; disposing it closes the metrics
 * @throws an error that is no WritError
 */
export async function openWatchers(config: AgentConfig, options: HostOptions): Promise<Watchers> {
  const durable = createDurableFs(options.observer);
  const { events, host } = config;
  const { clock, log, version } = options;
  const problems: Problem[] = [];
  const orWithout = async <T>(what: string, open: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await open();
    } catch (error) {
      if (!isWritError(error)) throw error;
      log.error({ err: error }, `${what} could not be opened; the agent runs without them`);
      problems.push({ ...problemOf(error), message: `${what} are left out: ${error.message}` });
      return undefined;
    }
  };
  const file = await orWithout('events', () => {
    if (events === undefined) return undefined;
    requireSafePathOrParent(dirname(events.file));
    return createEventsFile({ path: events.file, host: host.id, version, durable, clock, log });
  });
  const metrics = await orWithout('metrics', () => openMetrics(config, options, durable));
  return {
    observers: [file, metrics?.observer].filter((one) => one !== undefined),
    problems,
    [Symbol.asyncDispose]: async () => metrics?.close(),
  };
}

interface OpenMetrics {
  readonly observer: AgentObserver;
  close(): Promise<void>;
}

async function openMetrics(
  { metrics: at }: AgentConfig,
  { clock, log }: HostOptions,
  durable: DurableFs,
): Promise<OpenMetrics | undefined> {
  if (at === undefined) return undefined;
  // Loaded on demand, because these modules need 12 MB of memory.
  const [{ createMetrics }, { createAgentMetrics }, { listenForMetrics }] = await Promise.all([
    import('../../platform/telemetry/metrics.js'),
    import('./agent-metrics.js'),
    import('../../platform/net/metrics-listener.js'),
  ]);
  const metrics = await createMetrics({ process: 'include' });
  const { observer, text } = createAgentMetrics(metrics, clock.nowMs);
  const listener = await listenForMetrics({ at, durable, clock, text, contentType: metrics.contentType });
  log.info({ address: listener.address }, 'metrics open');
  return { observer, close: listener.close };
}
