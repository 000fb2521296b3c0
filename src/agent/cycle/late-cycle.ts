// The cycle of its own in which a generation is left that a worker refuses long after it became active. Owns the cycle, its
// story and its result; what is left and where it goes is late-refusal's.
import type { WritError } from '../../core/errors.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { endOf, withJob } from '../job/job.js';
import { newCycleId } from '../job/progress.js';
import { groupsIn, resultsIn } from '../notify/refusal.js';
import { workerKey } from '../notify/worker-groups.js';
import { isPaused } from '../select/pause.js';
import type { Host } from '../state/host.js';
import { leaveRefused } from './late-refusal.js';
import { noteLeft } from './reconcile-in-cycle.js';

/**
 * What to do about a no outside of any cycle: a cycle of its own. Its caller has the host for itself.
 * @param onEnd called with the end of that cycle, and why there was one
 */
export function leaveWhenRefused(
  onEnd: (end: CycleEnd, reason: string) => void,
): (host: Host, refusal: WritError) => Promise<void> {
  // Nothing has changed since nothing could be done: a look at every kept tree costs too much to be taken each time.
  let inVain = '';
  return async (host, refusal) => {
    const key = situationOf(host, refusal);
    if (key === inVain) return;
    const end = await leaveInCycle(host, refusal);
    inVain = end === undefined ? key : '';
    if (end !== undefined) onEnd(end, refusal.code);
  };
}

/** Who says no, to what, and what could be gone back to. */
function situationOf(host: Host, refusal: WritError): string {
  const { settled, previous, blocked } = host.ledger.read();
  const refused = resultsIn(refusal).filter((one) => one.state === 'refused');
  const noes = refused.map((one) => workerKey(one.group, one.worker));
  const now = [settled, previous, blocked?.atMs, isPaused(host)];
  return JSON.stringify([...now, refusal.code, groupsIn(refusal), noes]);
}

function leaveInCycle(host: Host, refusal: WritError): Promise<CycleEnd | undefined> {
  const options = { cycle: newCycleId(), trigger: 'due', firstStep: 'reset' } as const;
  return withJob(host, options, async (job) => {
    const left = await leaveRefused(job, { refusal, force: 'no' });
    if (left === undefined) return undefined;
    job.record.fromGeneration = left.from;
    noteLeft(job, left);
    return endOf(job);
  });
}
