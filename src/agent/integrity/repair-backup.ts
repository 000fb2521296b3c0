// Repairs a damaged backup (the target of a rollback): builds it again under a new number, which replaces the old one in the ledger. A
// backup that cannot be built again is removed from the ledger. `current` does not move, and no worker is notified.
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
import type { CycleEventListener } from '../job/exclusive.js';
import { type Job, withJob } from '../job/job.js';
import { newCycleId } from '../job/progress.js';
import type { Host } from '../state/host.js';
import { refreshAfterRenewal, stageDamaged } from './repair.js';
import { failuresIn, keepRecords, repairCandidate } from './repair-plan.js';

export type BackupEnd =
  /** The repaired backup; the same generation if only retained files were damaged. */
  | { readonly kind: 'made'; readonly generation: number }
  /** It could not be repaired this time, or a rollback can use it as it is. */
  | { readonly kind: 'kept'; readonly generation: number; readonly problem: Problem }
  | { readonly kind: 'given-up'; readonly problem: Problem };

/** The caller holds the job lock. @throws WritError INTERRUPTED; every other failure is in the result */
export async function repairBackup(
  host: Host,
  generation: number,
  { signal, onEvent }: { readonly signal: AbortSignal; readonly onEvent: CycleEventListener },
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
    // From now on it is collected like any other old generation.
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

/** Codes of lost digests and of releases that no key vouches for: no later repository state can repair these. */
const lostForGood: ReadonlySet<string> = new Set(['STATE_DAMAGED', 'RELEASE_UNTRUSTED']);

/** Whether a backup can never be repaired. Requires fresh metadata; a backup that a rollback can still use is not lost. */
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
