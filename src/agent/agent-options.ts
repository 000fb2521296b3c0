// What an agent is given of its surroundings by whoever composes the process: clock, log, randomness, signals.
import type { AgentState } from '../core/control-protocol.js';
import type { HostOptions } from './open-host.js';

export interface AgentOptions extends HostOptions {
  readonly configPath: string;
  readonly random01: () => number;
  /** Ends the agent in good order. */
  readonly stop: AbortSignal;
  /** Calls back at each SIGHUP; returns how to stop listening. */
  readonly onReload: (reload: () => void) => () => void;
  /** Told at each state, `run` when a verified policy is served or awaited. */
  readonly onState?: (state: AgentState) => void;
}
