// Notes in log and history what this host did apart from a cycle: policy grew too old or is fresh again, or
// was damaged on disk. An entry looks like a cycle without steps, so that every reader of the history can read it.
import type { Problem, Trigger, WorkerResult } from '../../core/cycle/cycle-report.js';
import { activeGenerationNumber } from '../generations/generations.js';
import type { Host } from '../state/host.js';
import { type CycleEnd, emptyRecord, finishCycle } from './cycle-result.js';
import { appendHistory } from './history.js';
import { newCycleId, openStory } from './progress.js';

export interface HostEvent {
  readonly problems: readonly Problem[];
  /** What happened, for people. */
  readonly reason: string;
  /** What it belongs to. */
  readonly trigger: Trigger;
  /** Who was told. */
  readonly workers?: readonly WorkerResult[];
  /** The person who asked; left out where nobody did. */
  readonly by?: string;
  /** Its id; a new one when it is left out. */
  readonly cycle?: string;
}

/** Never throws: reporting changes no outcome. */
export function recordEvent(host: Host, event: HostEvent): void {
  const { problems, reason, trigger, by, workers = [], cycle = newCycleId() } = event;
  try {
    const story = openStory({ cycle, trigger, clock: host.clock });
    const record = emptyRecord(activeGenerationNumber(host.paths));
    record.problems.push(...problems);
    record.workers.push(...workers);
    const result = finishCycle(host, story, record);
    host.log.warn({ cycle: result.cycle, result, reason }, 'event');
    const asked = { reason, ...(by === undefined ? {} : { by }) };
    const entry = { schema: 1, type: 'history.entry', ...asked, result, steps: [] } as const;
    appendHistory(host.paths, host.durable, entry);
  } catch (error) {
    host.log.error({ err: error, reason }, 'history could not be written');
  }
}

/** A repair is in history whatever came of it, also where no generation changed. Never throws. */
export function recordRepair(
  host: Host,
  { result, story }: CycleEnd,
  asked: { readonly by?: string; readonly reason: string },
): void {
  host.log.warn({ cycle: result.cycle, outcome: result.outcome, result, ...asked }, 'cycle ended');
  try {
    const entry = { schema: 1, type: 'history.entry', ...asked, result, steps: story.steps } as const;
    appendHistory(host.paths, host.durable, entry);
  } catch (error) {
    host.log.error({ err: error }, 'history could not be written');
  }
}
