// Notes the end of a cycle in the log and in history.jsonl; reporting never changes an outcome. A poll that found
// nothing, or finds the same trouble again, leaves no line in history.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import type { HistoryEntry } from '../../core/protocol/control-protocol.js';
import type { Host } from '../state/host.js';
import type { CycleEnd } from './cycle-result.js';
import { appendHistory } from './history.js';

export interface Recorder {
  record(host: Host, end: CycleEnd, asked: { readonly by?: string; readonly reason?: string }): void;
}

/** @returns a recorder that remembers what it said last */
export function createRecorder(): Recorder {
  let lastKey = '';
  return {
    record: (host, end, asked) => {
      const { result } = end;
      host.log.info({ cycle: result.cycle, outcome: result.outcome, result }, 'cycle ended');
      const key = keyOf(result);
      const isNews = key !== lastKey || asked.by !== undefined;
      lastKey = key;
      if (!result.changed && (result.outcome === 'unchanged' || !isNews)) return;
      try {
        appendHistory(host.paths, host.durable, entryOf(end, asked));
      } catch (error) {
        host.log.error({ err: error }, 'history could not be written');
      }
    },
  };
}

function entryOf(
  { result, story, recovers }: CycleEnd,
  asked: { readonly by?: string; readonly reason?: string },
): HistoryEntry {
  const left = recovers === undefined ? {} : { recovers };
  return { schema: 1, type: 'history.entry', ...asked, ...left, result, steps: story.steps };
}

/** What makes two results the same news. */
function keyOf(result: CycleResult): string {
  const bundles = result.bundles.map((one) => [one.bundle, one.outcome, one.toSerial, one.problem?.code]);
  return JSON.stringify([result.outcome, bundles, result.problems.map((one) => one.code)]);
}
