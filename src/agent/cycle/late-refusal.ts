// Handles a worker refusal that arrives after the cycle of the swap, because the worker was unreachable or slow. The host
// reacts as in that cycle: it records the refusal, restores the previous generation and notifies the affected groups, in a
// separate cycle if none runs. If no generation can be restored, or a restore would not help this worker, the policy stays
// and the worker is reported.
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { isWritError, type WritError } from '../../core/errors.js';
import { affectsGroup, changedPaths } from '../../core/release/affected-groups.js';
import { withoutPrevious } from '../activation/commit-ledger.js';
import { restorePrevious } from '../activation/restore.js';
import { type ActivePolicy, findNewReleases, readActivePolicy } from '../generations/generation-contents.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { chooseRollbackTarget } from '../generations/rollback-target.js';
import {
  bundleBefore,
  bundleMoved,
  type CycleEnd,
  type MoveResult,
  noteBundles,
} from '../job/cycle-result.js';
import { endOf, type Job, withJob } from '../job/job.js';
import { newCycleId } from '../job/progress.js';
import { groupOf, workerKey } from '../notify/worker-ledger.js';
import { refusingGroupsIn, resultsIn } from '../notify/worker-refusal.js';
import { isPaused } from '../select/pause.js';
import type { Host } from '../state/host.js';
import { recordBlamedReleases } from '../state/refusals.js';

export interface Left {
  /** The generation that was refused. */
  readonly from: number;
  readonly moved: MoveResult;
  readonly bundles: readonly BundleResult[];
}

/**
 * Restores the generation before the active one.
 * @param options.force `yes`: also during a pause
 * @returns undefined when the policy stays: changes are paused or blocked, no generation can be restored, or the worker has
 *   used the active generation before
 */
export async function leaveRefused(
  { host, progress, area }: Job,
  { refusal, force }: { readonly refusal: WritError; readonly force: 'yes' | 'no' },
): Promise<Left | undefined> {
  const active = readActivePolicy(host.paths);
  if (active === undefined || host.ledger.read().blocked !== undefined) return undefined;
  // A pause keeps the policy; the operator decides about the worker.
  if (force === 'no' && isPaused(host)) return undefined;
  const groups = refusingGroupsIn(refusal);
  if (hasConfirmedBefore(host, refusal, active.generation.number)) return undefined;
  const target = await findTarget(host, active);
  if (target === undefined) return undefined;
  const releases = findNewReleases(host.paths, {
    from: target.generation.number,
    to: active.generation.number,
  });
  const uses = new Set(
    host.config.workers.filter((one) => groups.includes(one.name)).flatMap((one) => one.uses),
  );
  if (!releases.some((one) => uses.has(one.bundle))) return undefined;
  const changed = changedPaths(target.bundles, active.bundles);
  const moved = await restorePrevious(
    host,
    progress,
    {
      kind: 'update',
      from: target.generation.number,
      to: active.generation.number,
      groups: host.groups.filter(
        ({ config }) => groups.includes(config.name) || affectsGroup(config, changed),
      ),
      releases,
      staging: area.path(),
      signal: new AbortController().signal,
      onRefused: (error, refusing) => recordBlamedReleases(host, releases, error, refusing),
    },
    { error: refusal },
  );
  forgetPrevious(host, target.generation.number);
  const bundles = releases.map((one) =>
    bundleMoved(bundleBefore(one, target.bundles.get(one.bundle)?.record.release.serial), moved),
  );
  return { from: active.generation.number, moved, bundles };
}

/**
 * Whether the refusing workers confirmed this generation before: then the fault is theirs, and a restore would not help. If
 * the refusal names only groups, one such worker is enough.
 */
function hasConfirmedBefore(host: Host, refusal: WritError, generation: number): boolean {
  const refused = resultsIn(refusal)
    .filter((one) => one.state === 'refused' || one.state === 'unreachable')
    .map((one) => workerKey(one.group, one.worker));
  const groups = refusingGroupsIn(refusal);
  const asked = Object.entries(host.ledger.read().workers).filter(([key]) =>
    refused.length > 0 ? refused.includes(key) : groups.includes(groupOf(key)),
  );
  const confirmed = asked.filter(([, one]) => one.confirmed === generation);
  return refused.length > 0 ? confirmed.length === asked.length && asked.length > 0 : confirmed.length > 0;
}

async function findTarget(host: Host, active: ActivePolicy): Promise<ActivePolicy | undefined> {
  try {
    return await chooseRollbackTarget(host, active, { force: 'no', refused: 'skipped' });
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn(
      { err: error },
      'a worker refuses the active generation, and there is no earlier one to restore',
    );
    return undefined;
  }
}

/** Clears the previous generation when it is the active one, because a generation is no backup of itself. */
function forgetPrevious(host: Host, generation: number): void {
  const ledger = host.ledger.read();
  // A restore that failed before it moved the link changed nothing.
  if (ledger.previous === generation && activeGenerationNumber(host.paths) === generation)
    host.ledger.write(withoutPrevious(ledger));
}

/** Adds the restore to the record of this job. */
export function noteLeft({ record }: Job, { moved, bundles }: Left): void {
  record.moves.push(moved);
  noteBundles(record, bundles);
}

/**
 * Creates the handler of a worker refusal outside of a cycle; it runs a separate cycle. The caller has the job lock.
 * @param onEnd called with the end of that cycle and its reason
 */
export function leaveWhenRefused(
  onEnd: (end: CycleEnd, reason: string) => void,
): (host: Host, refusal: WritError) => Promise<void> {
  // An attempt without effect is not repeated in the same situation, because it scans each retained tree.
  let failedSituation = '';
  return async (host, refusal) => {
    const key = fingerprintSituation(host, refusal);
    if (key === failedSituation) return;
    const end = await leaveInCycle(host, refusal);
    failedSituation = end === undefined ? key : '';
    if (end !== undefined) onEnd(end, refusal.code);
  };
}

/** A fingerprint of the refusing workers, the refused generation, and the generations that could be restored. */
function fingerprintSituation(host: Host, refusal: WritError): string {
  const { settled, previous, blocked } = host.ledger.read();
  const refused = resultsIn(refusal).filter((one) => one.state === 'refused');
  const refusing = refused.map((one) => workerKey(one.group, one.worker));
  const now = [settled, previous, blocked?.atMs, isPaused(host)];
  return JSON.stringify([...now, refusal.code, refusingGroupsIn(refusal), refusing]);
}

function leaveInCycle(host: Host, refusal: WritError): Promise<CycleEnd | undefined> {
  const options = { cycle: newCycleId(), trigger: 'pending', firstStep: 'reset' } as const;
  return withJob(host, options, async (job) => {
    const left = await leaveRefused(job, { refusal, force: 'no' });
    if (left === undefined) return undefined;
    job.record.fromGeneration = left.from;
    noteLeft(job, left);
    return endOf(job);
  });
}
