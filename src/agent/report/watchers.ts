// Opens what the configuration wants to watch the agent with: metrics and the file of events. Owns their life beside the
// agent's; what cannot be opened is said in the log, and the agent runs without it: policy does not wait for monitoring.
import type { AgentConfig } from '../../core/config/config.js';
import { isWritError } from '../../core/errors.js';
import { createDurableFs, type DurableFs } from '../../platform/disk/durable-fs.js';
import type { HostOptions } from '../state/host.js';
import { createEventsFile } from './events.js';
import type { AgentObserver } from './observer.js';

export interface Watchers extends AsyncDisposable {
  readonly observers: readonly AgentObserver[];
}

/** Never throws for an address that is taken, or a path that is wrong. */
export async function openWatchers(config: AgentConfig, options: HostOptions): Promise<Watchers> {
  const durable = createDurableFs(options.observer);
  const { events, host } = config;
  const { clock, log, version } = options;
  const file =
    events === undefined
      ? []
      : [createEventsFile({ path: events.file, host: host.id, version, durable, clock, log })];
  const metrics = await openMetrics(config, options, durable);
  return {
    observers: metrics === undefined ? file : [...file, metrics.observer],
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
  // Twelve megabytes that a host without metrics does not pay for.
  const [{ createMetrics }, { createAgentMetrics }, { listenForMetrics }] = await Promise.all([
    import('../../platform/telemetry/metrics.js'),
    import('./agent-metrics.js'),
    import('../../platform/net/metrics-listener.js'),
  ]);
  const metrics = await createMetrics({ process: 'include' });
  const { observer, text } = createAgentMetrics(metrics, clock.nowMs);
  try {
    const listener = await listenForMetrics({ at, durable, text, contentType: metrics.contentType });
    log.info({ address: listener.address }, 'metrics open');
    return { observer, close: listener.close };
  } catch (error) {
    if (!isWritError(error)) throw error;
    log.error({ err: error }, 'metrics could not be opened; the agent runs without them');
    return undefined;
  }
}
