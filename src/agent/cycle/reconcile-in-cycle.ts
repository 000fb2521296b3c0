// What a cycle does that brings nothing new: workers that could not be notified are notified now, and a generation that one
// of them refuses is left within the cycle that learns of it. Never fetches and never stages.
import type { Job } from '../job/job.js';
import { awaitEnough } from '../notify/membership.js';
import { reconcileWorkers } from '../notify/reconcile.js';
import { hearAgain } from '../notify/repeat-probe.js';
import { endBlockOfWorkers } from '../select/holds-and-blocks.js';
import type { CycleRequest } from './cycle-request.js';
import { type Left, leaveRefused, noteLeft } from './late-refusal.js';

/** A person is told how it is with workers that are on their way; nobody else waits for them. */
export function isAsked(trigger: CycleRequest['trigger']): boolean {
  return trigger === 'pull' || trigger === 'force';
}

/** @throws WritError DISK_*, STATE_DAMAGED */
export async function reconcileInCycle(job: Job, { force, signal, trigger }: CycleRequest): Promise<'ended'> {
  const { host, story, record, area } = job;
  let left: Left | undefined;
  if (isAsked(trigger)) await awaitEnough(host, signal, story.awaits);
  // A person is told how it is now; a poll leaves each worker its time.
  const who = trigger === 'poll' ? 'whose-turn-it-is' : 'all';
  const staging = (): string => area.path();
  await hearAgain(host, { staging, signal, who });
  const pending = await reconcileWorkers(host, {
    ...{ staging, signal, who, nextNotificationId: story.nextNotificationId },
    onRefused: async (refusal) => {
      left = await leaveRefused(job, { refusal, force });
    },
  });
  if (left !== undefined) {
    noteLeft(job, left);
    return 'ended';
  }
  endBlockOfWorkers(host, pending.problems);
  record.workers.push(...pending.results);
  record.problems.push(...pending.problems);
  record.warnings.push(...pending.warnings);
  story.note({ type: 'nothing', outcome: 'unchanged' });
  return 'ended';
}
