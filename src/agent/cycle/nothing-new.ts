// What a cycle does that brings nothing new: workers that could not be told are told now, and a generation that one of
// them refuses is left within the cycle that learns of it. Never fetches and never stages.
import { settleDue } from '../notify/reconcile.js';
import type { Cycle } from './cycle.js';
import { type Left, leaveRefused } from './late-refusal.js';

/** @throws WritError DISK_*, STATE_DAMAGED */
export async function nothingNew(cycle: Cycle): Promise<void> {
  const { host, story, findings, area, request } = cycle;
  let left: Left | undefined;
  const due = await settleDue(host, {
    ...{ staging: () => area.path(), signal: request.signal, nextTell: story.nextTell },
    // A person is told how it is now; a poll leaves each worker its time.
    who: request.trigger === 'poll' ? 'whose-turn-it-is' : 'all',
    onRefused: async (refusal) => {
      left = await leaveRefused(host, story, {
        ...{ refusal, staging: () => area.path(), force: request.force },
      });
    },
  });
  if (left !== undefined) return noteLeft(cycle, left);
  findings.workers.push(...due.results);
  findings.problems.push(...due.problems);
  story.note({ type: 'nothing', outcome: 'unchanged' });
}

/** A worker said no to what was active: this cycle has left it. */
function noteLeft({ findings }: Cycle, { moved, bundles }: Left): void {
  findings.moves.push(moved);
  for (const result of bundles) findings.bundles.set(result.bundle, result);
}
