// A host that does not poll while a test looks: each host polls at its own phase of the interval, which its id gives it, so
// one with an id that never changes polls in the same minute of each hour, sometimes between a pull and the look behind
// it. Of an agent that lives by the system's clock; one with a fake clock polls when its test says so.
import { phaseMs } from '../../../src/core/cycle/schedule.js';

const everyMs = 3_600_000;

export interface QuietPolls {
  readonly host: { readonly id: string };
  readonly poll: { readonly every: string };
}

/** @returns keys of agent.yaml. The poll of the start comes at once, as ever; the next is a quarter of an hour away or more */
export function quietPolls(name = 'test', nowMs = Date.now()): QuietPolls {
  for (let count = 0; ; count += 1) {
    const id = `${name}-${count}`;
    const aheadMs = (phaseMs(id, everyMs) - (nowMs % everyMs) + everyMs) % everyMs;
    if (aheadMs >= everyMs / 4) return { host: { id }, poll: { every: '1h' } };
  }
}
