// Several observers of an agent as one. Owns the order in which they are told: the one they were given in.
import type { AgentObserver } from '../daemon/agent-options.js';

export type Observers = Required<AgentObserver>;

export function allOf(observers: readonly AgentObserver[]): Observers {
  const each = (tell: (observer: AgentObserver) => void): void => observers.forEach(tell);
  return {
    onState: (state) => each((one) => one.onState?.(state)),
    onStatus: (report) => each((one) => one.onStatus?.(report)),
    onCycle: (end) => each((one) => one.onCycle?.(end)),
    onWork: (work, config) => each((one) => one.onWork?.(work, config)),
    onReload: (phase) => each((one) => one.onReload?.(phase)),
  };
}
