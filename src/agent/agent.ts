// Starts the agent: configuration, lock, host, then the running agent, one log line a step. The composition root
// of the process: clock, log, randomness and signals come in here.
import { toWritError } from '../core/errors.js';
import { keepHeapSmall } from '../platform/process/heap.js';
import { createLog, type LogForm, type LogLevel } from '../platform/telemetry/log.js';
import { openNotifier } from '../platform/telemetry/sd-notify.js';
import { systemClock } from '../platform/time/clock.js';
import { loadForAgent } from './config/load-config.js';
import type { AgentOptions } from './daemon/compose.js';
import { RunningAgent } from './daemon/running-agent.js';
import { thisMachine } from './identity/install-id.js';
import type { AgentObserver } from './report/observer.js';
import { notifyServiceManager, type ServiceManager } from './report/service-manager.js';
import { openWatchers } from './report/watchers.js';
import { loadLazyModules } from './startup/lazy-modules.js';
import { lockHost, openHost } from './startup/open-host.js';

export interface RunAgentOptions {
  readonly configPath: string;
  readonly logLevel: LogLevel;
  readonly logForm: LogForm;
  readonly version: string;
  /** Aborted by SIGINT and SIGTERM: end cleanly. */
  readonly signal: AbortSignal;
  readonly observers?: readonly AgentObserver[];
}

/**
 * `writ agent`.
 * @returns the exit code of a clean end
 * @throws WritError for what keeps it from starting: configuration, PATH_UNSAFE, LOCK_HELD, ROOT_MISSING,
 *   STATE_DAMAGED, SOCKET_IN_USE, LISTEN_FAILED
 */
export async function runAgent(options: RunAgentOptions): Promise<number> {
  keepHeapSmall();
  const { configPath, version, signal: stop, observers = [] } = options;
  const log = createLog('writ-agent', options.logLevel, options.logForm);
  const onReload = listenForReloads();
  const notifier = openNotifier({ env: process.env, pid: process.pid, log });
  const manager = notifier && notifyServiceManager({ notifier, clock: systemClock, stop });
  await untilEndIsNotified(manager, () =>
    startAgent({
      configPath,
      version,
      clock: systemClock,
      log,
      random01: Math.random,
      install: thisMachine,
      stop,
      onReload,
      observers: manager === undefined ? observers : [...observers, manager.observer],
    }),
  );
  return 0;
}

/** From before the configuration is read: one that changes between that and the first listener is read again. */
function listenForReloads(): AgentOptions['onReload'] {
  let wasAsked = false;
  const remember = (): void => {
    wasAsked = true;
  };
  process.on('SIGHUP', remember);
  return (reload) => {
    process.on('SIGHUP', reload);
    if (wasAsked) reload();
    return () => process.off('SIGHUP', reload);
  };
}

async function untilEndIsNotified(
  manager: ServiceManager | undefined,
  run: () => Promise<void>,
): Promise<void> {
  try {
    await run();
  } catch (error) {
    await manager?.end(toWritError(error));
    throw error;
  }
  await manager?.end();
}

/** Runs an agent whose surroundings are given; resolves when it has ended. */
export async function startAgent(options: AgentOptions): Promise<void> {
  const { config, digest } = loadForAgent(options.configPath, options.log);
  const lock = await lockHost(config, options, { holder: 'agent', waitMs: 0, signal: options.stop });
  options.log.info({ state: config.state }, 'lock taken');
  try {
    await loadLazyModules(config);
    await using watchers = await openWatchers(config, options);
    const host = await openHost(config, options, lock);
    const observers = [...(options.observers ?? []), ...watchers.observers];
    await new RunningAgent({ ...options, observers, leftOut: watchers.problems }, { host, digest }).run();
  } finally {
    lock.release();
  }
}
