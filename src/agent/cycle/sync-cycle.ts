// One cycle from refresh to commit (docs/ARCHITECTURE.md, The cycle). Each bundle has its own result, and the cycle has the
// worst of them. Before the swap no file changes that workers can read. build-candidate.ts has the steps up to the canary;
// the activation module has the steps from the swap on.
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { isNowActive } from '../../core/cycle/sync-machine.js';
import { toWritError, WritError } from '../../core/errors.js';
import { activate } from '../activation/activate.js';
import { mayPlanAgain } from '../activation/check-before-move.js';
import type { Move } from '../activation/move.js';
import { placeCandidate } from '../activation/place.js';
import { noteMissedReleases } from '../freshness/missed-releases.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { renewOutdatedRecords } from '../generations/renew-release.js';
import { findUntrusted, untrustedProblems } from '../generations/untrusted-releases.js';
import { damageProblems } from '../integrity/current-damage.js';
import { keepRecords } from '../integrity/repair-plan.js';
import { bundleMoved, type CycleEnd, type MoveResult, noteBundles } from '../job/cycle-result.js';
import { isEndedForAnotherJob } from '../job/exclusive.js';
import { type Job, runJob } from '../job/job.js';
import { newCycleId } from '../job/progress.js';
import { awaitMinimumMembers } from '../notify/membership.js';
import { dropPartials, sweepPartials } from '../partials/partials.js';
import { longestCycleMs } from '../report/step-bound-rules.js';
import { holdBackPaced } from '../select/pace.js';
import { rememberRefusedBundles } from '../select/select-releases.js';
import { type Selection, taken } from '../select/selection.js';
import { noteSpaceNeeded } from '../select/space-memory.js';
import { assembleCandidate, type CandidateBundle } from '../staging/candidate.js';
import type { Host } from '../state/host.js';
import { addRetryTimes } from '../state/refusals.js';
import {
  askCanaries,
  check,
  fetchReleases,
  isNothingToDo,
  openDraft,
  reportVerified,
  select,
  stageTrees,
} from './build-candidate.js';
import type { CycleRequest } from './cycle-request.js';
import type { RunOptions } from './cycle-runner.js';
import { planSwap, type SwapPlan } from './plan-swap.js';
import { isAsked, reconcileInCycle } from './reconcile-in-cycle.js';
import { refreshTrust } from './refresh-trust.js';
import { spareForWithdrawal } from './reserve-for-withdrawal.js';
import { withoutTurn } from './without-turn.js';

/** Runs one cycle with a new id, for the agent and for a standalone run. */
export function runSync(
  host: Host,
  { trigger, by: _, ...run }: RunOptions & Pick<CycleRequest, 'signal' | 'waitForRefresh' | 'onRefreshed'>,
): Promise<CycleEnd> {
  const force = trigger === 'force' ? 'yes' : 'no';
  return syncCycle(host, { ...run, cycle: newCycleId(), trigger, force });
}

/** Limit of selections that are repeated because the state or the releases changed during the download. */
const maxChanges = 3;

/** Runs one cycle. Never rejects: errors are in the result. */
export function syncCycle(host: Host, request: CycleRequest): Promise<CycleEnd> {
  return runJob(host, { ...request, onError, afterwards: recordAfterCycle }, async (job) => {
    const vanished = host.stateMark?.renew();
    if (vanished !== undefined) throw vanished;
    job.record.fromGeneration = activeGenerationNumber(host.paths);
    try {
      await runAttempt(job, request);
    } catch (error) {
      if (!mayPlanAgain(error)) throw error;
      host.log.warn({ cycle: job.progress.cycle, err: error }, 'the cycle begins again before its swap');
      job.area.remove(host.log);
      job.progress.note({ type: 'outdated' });
      await runAttempt(job, request);
    }
    addRetryTimes(host, job.record.bundles);
  });
}

/** Runs the cycle from its refresh on. @throws WritError SWAP_OUTDATED if the caller may retry; other errors end the cycle */
async function runAttempt(job: Job, request: CycleRequest): Promise<void> {
  // The last cycle may have been killed after its refresh, and this refresh replaces metadata that verified the active releases.
  renewOutdatedRecords(job.host, () => job.area.path());
  await withoutTurn(job, request, (signal) => refreshTrust(job, { ...request, signal }));
  const refused = new Map<string, BundleResult>();
  const left = { again: job.host.config.bundles.length, changed: maxChanges };
  for (;;) {
    const end = await tryCandidate(job, request, refused);
    if (end === 'ended') return;
    left[end] -= 1;
    if (left.changed < 0) throw changedTooOften();
    if (left.again < 0) return;
  }
}

/**
 * Runs the cycle after its refresh: selects, stages and activates one candidate.
 * @param refused bundles that a worker refused earlier in this cycle, with their results
 * @returns `again` when workers refused some of the new bundles, so the others are tried without them; `changed` when the
 *   selection became outdated during the download
 */
async function tryCandidate(
  job: Job,
  request: CycleRequest,
  refused: Map<string, BundleResult>,
): Promise<'ended' | 'again' | 'changed'> {
  const { host, progress } = job;
  const selected = await select(job, request, refused);
  // Before the downloads, because they may fail, and because a refresh during a download replaces the metadata.
  renewOutdatedRecords(host, () => job.area.path());
  const { active, selections: before } = selected;
  spareForWithdrawal(host, active.policy, before);
  if (isNothingToDo(job, request, { active: active.policy, selected: before })) {
    if (active.error !== undefined) throw active.error;
    return reconcileInCycle(job, request);
  }
  const draft = openDraft(job, request, active);
  const fetched = await fetchReleases(job, request, { draft, selected });
  if (fetched === undefined) {
    // A partial download with a second link in staging is not resumed.
    job.area.remove(host.log);
    progress.note({ type: 'retried' });
    return 'changed';
  }
  const trees = await stageTrees(job, draft, fetched);
  await reportVerified(job, trees);
  const paced = holdBackPaced(host, trees.selections, { ...draft, ...trees, active: active.policy });
  const checked = await check(job, { ...draft, ...trees }, paced);
  const { selections } = await askCanaries(job, { ...draft, ...trees }, checked);
  rememberRefusedBundles(host, selections);
  const candidate = assembleCandidate(selections, trees.staged, draft.active);
  // Ends the cycle, because the candidate would remove a damaged bundle without a replacement.
  if (active.error !== undefined && !isReplaced(host, active.lost, candidate)) throw active.error;
  requireNotStopped(request.signal);
  const plan = await planSwap(host, { ...draft, candidate });
  if (plan.kind === 'none') {
    keepRecords(host, plan.records, draft.staging);
    return reconcileInCycle(job, request);
  }
  if (isAsked(request.trigger)) await awaitMinimumMembers(host, request.signal, progress.awaits);
  await place(job, plan, draft);
  const moved = await activate(host, progress, { ...plan.move, ...refreshOf(job, candidate) });
  const changed = noteMoved(job, selections, moved);
  if (!shouldRetryWithoutRefused(moved, changed, refused)) return 'ended';
  progress.note({ type: 'retried' });
  return 'again';
}

/** The refresh that verified the candidate's releases, and the delegated roles that signed them. */
function refreshOf({ host, record }: Job, candidate: readonly CandidateBundle[]): Pick<Move, 'refresh'> {
  const { refreshedAtBootMs: atBootMs } = record;
  if (atBootMs === undefined) return {};
  const chains = candidate.flatMap(({ staged }) => staged?.target.vouchedBy.chain ?? []);
  const delegated = chains.map(({ role }) => role);
  return { refresh: { atBootMs, maxAgeMs: longestCycleMs(host.config), delegated } };
}

function onError(error: unknown, { host, progress }: Job): WritError {
  const end = toWritError(error);
  const { cycle } = progress;
  if (isEndedForAnotherJob(end))
    host.log.info({ cycle }, 'the cycle ended for another job, and begins again');
  else host.log.warn({ cycle, err: error }, 'the cycle ended with an error');
  return end;
}

function recordAfterCycle({ host, record, progress }: Job): void {
  if (record.error?.code === 'STATE_VANISHED') return;
  if (progress.steps.some(({ step }) => step === 'fetch')) sweepFetched(host, record);
  noteSpaceNeeded(host, record.bundles);
  noteMissedReleases(host, record);
  // Also after a failed refresh, because it may have accepted a root that revoked keys.
  try {
    record.problems.push(...untrustedProblems(findUntrusted(host), host.config), ...damageProblems(host));
  } catch (error) {
    host.log.warn({ err: error }, 'the kept releases could not be verified again');
  }
}

/** Deletes partial downloads when every bundle is current or the disk failed. Otherwise keeps them for the next cycle. */
function sweepFetched(host: Host, { error, bundles }: Job['record']): void {
  const isDone = (one: BundleResult): boolean => one.outcome === 'unchanged' || isNowActive(one);
  const isOver = error === undefined ? [...bundles.values()].every(isDone) : error.code.startsWith('DISK_');
  try {
    if (isOver) dropPartials(host);
    else sweepPartials(host);
  } catch (caught) {
    host.log.warn({ err: caught }, 'partial downloads could not be checked');
  }
}

function isReplaced(host: Host, lost: readonly string[], candidate: readonly CandidateBundle[]): boolean {
  const configured = host.config.bundles.map((one) => one.name).filter((name) => lost.includes(name));
  return (
    lost.length > 0 &&
    configured.every((name) => candidate.some((one) => one.staged?.release.bundle === name))
  );
}

function changedTooOften(): WritError {
  const message = `the releases to take changed ${maxChanges + 1} times while this cycle downloaded them`;
  return new WritError('GENERATION_CHANGED', message, { facts: { changes: maxChanges + 1 } });
}

/** Prevents a swap after a stop request, because the process would exit while it notifies workers. */
function requireNotStopped(signal: AbortSignal): void {
  if (signal.aborted) throw new WritError('INTERRUPTED', 'the cycle was ended before its swap');
}

function place(
  { host, progress }: Job,
  { candidate, records }: Extract<SwapPlan, { kind: 'swap' }>,
  draft: { readonly staging: string; readonly generation: number },
): Promise<void> {
  return progress.step('flush', async () => {
    await placeCandidate(host, candidate, draft);
    keepRecords(host, records, draft.staging);
    return { value: undefined, text: `generation ${draft.generation}` };
  });
}

/** Records the move. @returns the results of the bundles with a new release */
function noteMoved({ record }: Job, selections: readonly Selection[], moved: MoveResult): BundleResult[] {
  const results = taken(selections).map(({ result }) => bundleMoved(result, moved));
  record.moves.push(moved);
  noteBundles(record, results);
  return results;
}

/** True when workers refused some of the new bundles, but not all. Adds the refused ones to `refused`. */
function shouldRetryWithoutRefused(
  { outcome, blamed = [] }: MoveResult,
  changed: readonly BundleResult[],
  refused: Map<string, BundleResult>,
): boolean {
  const isBlamed = ({ bundle }: BundleResult): boolean => blamed.includes(bundle);
  for (const one of changed.filter(isBlamed)) refused.set(one.bundle, one);
  return outcome === 'rolled-back' && blamed.length > 0 && !changed.every(isBlamed);
}
