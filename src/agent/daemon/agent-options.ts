// What an agent is given of its surroundings by whoever composes the process: clock, log, randomness, signals.
import type { AgentConfig } from '../../core/config/config.js';
import type { AgentState, StatusReport } from '../../core/protocol/control-protocol.js';
import type { Work } from '../cycle/cycle-runner.js';
import type { CycleEnd } from '../cycle/sync-cycle.js';
import type { HostOptions } from '../startup/open-host.js';

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

/** Called after the fact and in its order. Must neither throw nor delay: reporting changes no outcome. */
export interface AgentObserver {
  /** At each state, `run` when a verified policy is served or awaited. */
  onState?(state: AgentState): void;
  /** At each change of what `writ status` tells. */
  onStatus?(report: StatusReport): void;
  /** At the end of each cycle, rollback, recovery. */
  onCycle?(end: CycleEnd): void;
  /** Whenever a job begins, comes to its next step, and ends: who watches for one that hangs knows it by that. */
  onWork?(work: Work, config: AgentConfig): void;
  /** A SIGHUP came; later whether the new configuration is in use, or the old one was kept. */
  onReload?(phase: 'began' | 'reloaded' | 'kept'): void;
}
