// Several observers of an agent as one. Owns the order in which they are notified: the one they were given in.
import type { AgentConfig } from '../../core/config/config.js';
import type { AgentState, StatusReport } from '../../core/status/status.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Work } from '../job/exclusive.js';

export type Observers = Required<AgentObserver>;

export function allOf(observers: readonly AgentObserver[]): Observers {
  const each = (notify: (observer: AgentObserver) => void): void => observers.forEach(notify);
  return {
    onState: (state) => each((one) => one.onState?.(state)),
    onStatus: (report) => each((one) => one.onStatus?.(report)),
    onCycle: (end) => each((one) => one.onCycle?.(end)),
    onEndedEarly: (end) => each((one) => one.onEndedEarly?.(end)),
    onWork: (work, config) => each((one) => one.onWork?.(work, config)),
    onReload: (phase) => each((one) => one.onReload?.(phase)),
  };
}

/** Called after the fact and in its order. Must neither throw nor delay: reporting changes no outcome. */
export interface AgentObserver {
  /** At each state, `run` when a verified policy is served or awaited. */
  onState?(state: AgentState): void;
  /** At each change of what `writ status` notifies. */
  onStatus?(report: StatusReport): void;
  /** At the end of each cycle, rollback, recovery. */
  onCycle?(end: CycleEnd): void;
  /** A cycle ended for another job, and begins again: no outcome of its own. */
  onEndedEarly?(end: CycleEnd): void;
  /** Whenever a job begins, comes to its next step, and ends: who watches for one that hangs knows it by that. */
  onWork?(work: Work, config: AgentConfig): void;
  /** A SIGHUP came; later whether the new configuration is in use, or the old one was kept. */
  onReload?(phase: 'began' | 'reloaded' | 'kept'): void;
}
