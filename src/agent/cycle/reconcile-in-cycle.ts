// Reconciles workers in a cycle without a new release: notifies pending workers, and restores the previous generation within
// the same cycle if one of them refuses the active one. Never fetches and never stages.
import type { Job } from '../job/job.js';
import { awaitMinimumMembers } from '../notify/membership.js';
import { reconcileWorkers } from '../notify/reconcile.js';
import { retryOpenProbes } from '../notify/repeat-probe.js';
import { endBlockOfWorkers } from '../select/holds-and-blocks.js';
import type { CycleRequest } from './cycle-request.js';
import { type Left, leaveRefused, noteLeft } from './late-refusal.js';

/** Whether an operator requested the cycle: only then it waits for workers that are starting. */
export function isAsked(trigger: CycleRequest['trigger']): boolean {
  return trigger === 'pull' || trigger === 'force';
}

/**
 * Notifies the pending workers of the active generation, and adds results, problems and warnings to `job.record`. Writes the
 * ledger. A `poll` respects the backoff of each worker; `pull` and `force` first wait for the minimum of members.
 * @returns always `ended`, because the cycle has no further step, also without an active generation. If a worker refused and the
 *   previous generation was restored, the record has that move and the bundles that it changed instead
 * @throws WritError DISK_*, STATE_DAMAGED. A worker that fails or refuses is no error
 */
export async function reconcileInCycle(job: Job, { force, signal, trigger }: CycleRequest): Promise<'ended'> {
  const { host, progress, record, area } = job;
  let left: Left | undefined;
  if (isAsked(trigger)) await awaitMinimumMembers(host, signal, progress.awaits);
  // A poll respects the backoff of each worker; any other trigger notifies all pending workers at once.
  const ignoreBackoff = trigger !== 'poll';
  const staging = (): string => area.path();
  await retryOpenProbes(host, { staging, signal, ignoreBackoff });
  const pending = await reconcileWorkers(host, {
    ...{ staging, signal, ignoreBackoff, nextNotificationId: progress.nextNotificationId },
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
  progress.note({ type: 'nothing', outcome: 'unchanged' });
  return 'ended';
}
