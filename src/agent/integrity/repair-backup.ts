// Makes a damaged backup whole: the generation that a rollback would go to, built again under a number of its own and
// named in the ledger in the old one's place. One that nobody can have again is given up: the ledger names it no more.
// `current` does not move, and nobody is notified.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isWritError } from '../../core/errors.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import { withBackup } from '../activation/commit-ledger.js';
import { placeCandidate } from '../activation/place.js';
import { examineGeneration } from '../generations/examine.js';
import { noteLinks } from '../generations/generation-notes.js';
import { reserveGeneration } from '../generations/generations.js';
import { chooseRollbackTarget } from '../generations/rollback-target.js';
import type { Hear } from '../job/exclusive.js';
import { type Job, withJob } from '../job/job.js';
import { newCycleId } from '../job/progress.js';
import type { Host } from '../state/host.js';
import { refreshAfterRenewal, stageDamaged } from './repair.js';
import { failuresIn, keepRecords, repairCandidate } from './repair-plan.js';

export type BackupEnd =
  /** The generation that is the backup now: the same one where only what is kept was damaged. */
  | { readonly kind: 'made'; readonly generation: number }
  /** It could not be made again this time, or a rollback can go to it as it is. */
  | { readonly kind: 'kept'; readonly generation: number; readonly problem: Problem }
  | { readonly kind: 'given-up'; readonly problem: Problem };

/** The caller has the host for itself. @throws WritError INTERRUPTED; what is in the way is in the end */
export async function repairBackup(
  host: Host,
  generation: number,
  { signal, onEvent }: { readonly signal: AbortSignal; readonly onEvent: Hear },
): Promise<BackupEnd> {
  const job = { cycle: newCycleId(), trigger: 'repair', firstStep: 'fetch', onEvent } as const;
  try {
    return await withJob(host, job, (opened) => remakeBackup(opened, generation, signal));
  } catch (error) {
    if (!isWritError(error) || error.code === 'INTERRUPTED') throw error;
    host.log.warn({ err: error, generation }, 'a damaged backup could not be repaired');
    return { kind: 'kept', generation, problem: problemOf(error) };
  }
}

async function remakeBackup(job: Job, generation: number, signal: AbortSignal): Promise<BackupEnd> {
  const { host, area } = job;
  const wanted = await examineGeneration(host, generation, {
    contents: 'digests',
    pace: unboundedPace(signal),
  });
  const reserved = reserveGeneration(host);
  const staging = area.directory(String(reserved.generation));
  const options = { download: 'yes', signal } as const;
  const made = await stageDamaged(job, { wanted, options, staging, ...reserved });
  const failures = failuresIn(made.selections);
  const [problem] = failures;
  if (problem !== undefined) {
    host.log.warn({ generation, problem }, 'a damaged backup could not be repaired');
    if (!(await isLostForGood(host, generation, { failures, signal, staging })))
      return { kind: 'kept', generation, problem };
    // From here on it is as any old generation: collected when its time has come.
    host.ledger.write(withBackup(host.ledger.read(), generation, undefined));
    return { kind: 'given-up', problem };
  }
  const { candidate, records, replaced } = await repairCandidate(host, made);
  keepRecords(host, records, staging);
  if (replaced.length === 0 && wanted.links.length === 0) return { kind: 'made', generation };
  await placeCandidate(host, candidate, { staging, generation: reserved.generation });
  const named = withBackup(host.ledger.read(), generation, reserved.generation);
  host.ledger.write(noteLinks(host.paths, named, reserved.generation));
  host.log.warn({ generation, by: reserved.generation }, 'a damaged backup was repaired');
  return { kind: 'made', generation: reserved.generation };
}

/** What nobody knows the signed digests of, or vouches for any more: no repository that comes back repairs that. */
const lostForGood: ReadonlySet<string> = new Set(['STATE_DAMAGED', 'RELEASE_UNTRUSTED']);

/** Only fresh metadata can say so; and a backup that a rollback could go to is one still. */
async function isLostForGood(
  host: Host,
  generation: number,
  { failures, ...refresh }: { failures: readonly Problem[]; staging: string; signal: AbortSignal },
): Promise<boolean> {
  if (!failures.some(({ code }) => lostForGood.has(code))) return false;
  try {
    await refreshAfterRenewal(host, refresh);
  } catch (error) {
    if (!isWritError(error)) throw error;
    return false;
  }
  try {
    await chooseRollbackTarget(host, undefined, { generation, force: 'yes' });
    return false;
  } catch (error) {
    if (!isWritError(error)) throw error;
    return lostForGood.has(error.code);
  }
}
