// What an agent is given of its surroundings by whoever composes the process: clock, log, randomness, signals.

import type { AgentObserver } from '../report/observer.js';
import type { HostOptions } from '../state/host.js';

export interface AgentOptions extends HostOptions {
  readonly configPath: string;
  readonly random01: () => number;
  /** Ends the agent in good order. */
  readonly stop: AbortSignal;
  /** Calls back at each SIGHUP; returns how to stop listening. */
  readonly onReload: (reload: () => void) => () => void;
  /** Whoever watches the agent, as the service manager. */
  readonly observers?: readonly AgentObserver[];
}
