// The events of an agent that metrics, events file, status feed and service manager observe.
import type { AgentConfig } from '../../core/config/config.js';
import type { AgentState, StatusReport } from '../../core/status/status.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Work } from '../job/exclusive.js';

export type Observers = Required<AgentObserver>;

/** @returns one observer that notifies the given ones in their order */
export function combineObservers(observers: readonly AgentObserver[]): Observers {
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

/** Each method is called after its event, in the order of the events. It must not throw or wait, because reporting changes no outcome. */
export interface AgentObserver {
  /** Called at each state of the agent; `run`: a verified policy is active, or the agent waits for the first one. */
  onState?(state: AgentState): void;
  /** Called when the status report changes. */
  onStatus?(report: StatusReport): void;
  /** Called at the end of each cycle, rollback, repair and recovery. */
  onCycle?(end: CycleEnd): void;
  /** Called when a cycle without an outcome ends early for another job, before it starts again. */
  onEndedEarly?(end: CycleEnd): void;
  /** Called when a job begins, reaches its next step, and ends, so that a watchdog can detect a job that hangs. */
  onWork?(work: Work, config: AgentConfig): void;
  /** Called at a SIGHUP (`began`), and when the new configuration is in use (`reloaded`) or was rejected (`kept`). */
  onReload?(phase: 'began' | 'reloaded' | 'kept'): void;
}
