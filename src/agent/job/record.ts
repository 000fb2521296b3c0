// Writes the end of a job to log and history, and an event apart from a cycle as an entry of a cycle without steps. Reporting never
// changes an outcome. A poll that found nothing, or the same problem again without a move of the link, leaves no line in history.
import type { CycleResult, Problem, Trigger, WorkerResult } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { HistoryEntry } from '../../core/protocol/control-protocol.js';
import type { PauseStatus } from '../../core/status/status.js';
import { activeGenerationNumber } from '../generations/generations.js';
import type { Host } from '../state/host.js';
import { setAsidePath } from '../state/set-aside.js';
import { isDiskError } from '../state/state-file.js';
import { type CycleEnd, emptyRecord, finishCycle } from './cycle-result.js';
import { appendHistory, foreignText } from './history.js';
import { newCycleId, startCycleProgress } from './progress.js';

export interface HostEvent {
  readonly problems: readonly Problem[];
  /** Changes no outcome. */
  readonly warnings?: readonly Problem[];
  /** A sentence for people. */
  readonly reason: string;
  /** The kind of cycle that the event belongs to. */
  readonly trigger: Trigger;
  /** The workers that were notified. */
  readonly workers?: readonly WorkerResult[];
  /** Name of the person with the request; left out without a request. */
  readonly by?: string;
  /** The pause after an event that began or ended one. */
  readonly pause?: PauseStatus | 'none';
  /** Its id; a new one when it is left out. */
  readonly cycle?: string;
}

/** Never throws: reporting changes no outcome. */
export function recordEvent(host: Host, event: HostEvent): void {
  const { problems, warnings = [], reason, trigger, by, pause, workers = [], cycle = newCycleId() } = event;
  try {
    const progress = startCycleProgress({ cycle, trigger, clock: host.clock });
    const record = emptyRecord(activeGenerationNumber(host.paths));
    record.problems.push(...problems);
    record.warnings.push(...warnings);
    record.workers.push(...workers);
    const result = finishCycle(host, progress, record);
    host.log.warn({ cycle: result.cycle, result, reason }, 'event');
    const asked = { reason, ...given({ by, pause }) };
    const entry = { schema: 1, type: 'history.entry', ...asked, result, steps: [] } as const;
    append(host, entry);
  } catch (error) {
    host.log.error({ err: error, reason }, 'history could not be written');
  }
}

/** Adds an entry about the repair where the history was not a regular file. @throws WritError DISK_* */
function append(host: Host, entry: HistoryEntry): void {
  const rebuilt = appendOrKeep(host, entry).map((path) => {
    return rebuiltProblem(path, foreignText(path));
  });
  if (rebuilt.length === 0) return;
  recordEvent(host, {
    trigger: 'recovery',
    problems: [],
    warnings: rebuilt,
    reason: 'the history was repaired',
  });
}

/** Later entries are only in the log while the disk stays full. */
const maxMissedEntries = 20;

/** An entry that a full disk refuses during a restore is kept, and written later together with that of the restore. @throws WritError DISK_* */
function appendOrKeep({ paths, durable, restoreMemory }: Host, entry: HistoryEntry): string[] {
  try {
    return appendHistory(paths, durable, entry);
  } catch (error) {
    const { unrecorded: restore, entries } = restoreMemory;
    if (restore !== undefined && isDiskError(error) && entries.length < maxMissedEntries) entries.push(entry);
    throw error;
  }
}

/** Writes the entries that a full disk refused. Never throws. */
export function writeMissedEntries(host: Host): void {
  const { paths, durable, restoreMemory } = host;
  try {
    for (let entry = restoreMemory.entries[0]; entry !== undefined; entry = restoreMemory.entries[0]) {
      appendHistory(paths, durable, entry);
      restoreMemory.entries.shift();
    }
  } catch (error) {
    host.log.error({ err: error }, 'history could not be written');
  }
}

/**
 * Creates the problem STATE_REBUILT for a state file that was replaced. Writes nothing. Throws nothing.
 * @param path of the damaged file. The copy in `facts.kept` has the same path with `.damaged` at the end
 * @param text what was wrong with the file, and what is lost
 * @returns the problem, with `text` as its message and `path` and `kept` as its facts
 */
export function rebuiltProblem(path: string, text: string): Problem {
  return problemOf(new WritError('STATE_REBUILT', text, { facts: { path, kept: setAsidePath(path) } }));
}

/**
 * Writes a repair to the log and the history with any outcome, also where no generation changed. Never throws: a
 * history that cannot be written is logged.
 * @param asked the caller (undefined: Writ itself) and the reason of the repair
 */
export function recordRepair(
  host: Host,
  { result, progress }: CycleEnd,
  asked: { readonly by?: string; readonly reason: string },
): void {
  host.log.warn({ cycle: result.cycle, outcome: result.outcome, result, ...asked }, 'cycle ended');
  try {
    const entry = { schema: 1, type: 'history.entry', ...asked, result, steps: progress.steps } as const;
    append(host, entry);
  } catch (error) {
    host.log.error({ err: error }, 'history could not be written');
  }
}

export interface Recorder {
  record(host: Host, end: CycleEnd, asked: { readonly by?: string; readonly reason?: string }): void;
}

/** @returns a recorder that leaves out a result that is equal to the last one */
export function createRecorder(): Recorder {
  let lastKey = '';
  return {
    record: (host, end, asked) => {
      const { result } = end;
      host.log.info({ cycle: result.cycle, outcome: result.outcome, result }, 'cycle ended');
      const key = keyOf(result);
      const isNews = key !== lastKey || asked.by !== undefined || hasMovedLink(end);
      lastKey = key;
      if (!result.changed && (result.outcome === 'unchanged' || !isNews)) return;
      try {
        append(host, entryOf(end, asked));
      } catch (error) {
        host.log.error({ err: error }, 'history could not be written');
      }
    },
  };
}

/** True also where the link was moved back: workers were notified, and an operator searches for each try. */
function hasMovedLink({ progress }: CycleEnd): boolean {
  return progress.steps.some(
    ({ step, verdict }) => step === 'swap' && (verdict === 'ok' || verdict === 'warn'),
  );
}

function entryOf(
  { result, progress, recovers }: CycleEnd,
  asked: { readonly by?: string; readonly reason?: string },
): HistoryEntry {
  const left = recovers === undefined ? {} : { recovers };
  return { schema: 1, type: 'history.entry', ...asked, ...left, result, steps: progress.steps };
}

/** @returns the same text for results that need only one line */
function keyOf(result: CycleResult): string {
  const bundles = result.bundles.map((one) => [one.bundle, one.outcome, one.toSerial, one.problem?.code]);
  return JSON.stringify([result.outcome, bundles, result.problems.map((one) => one.code)]);
}
