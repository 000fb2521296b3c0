// The steps of a cycle from `select` to `canary`, one function for each. They write only into the cycle's staging directory.
// sync-cycle.ts calls them in order.
import type { BundleResult, Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { canaryStep } from '../checks/canary-step.js';
import type { CheckAllOptions } from '../checks/candidate-context.js';
import { type CheckedCandidate, checkAll, checkStep } from '../checks/check-candidate.js';
import {
  type ActivePolicy,
  listRetainedBundles,
  type PartialPolicy,
  readPartialPolicy,
} from '../generations/generation-contents.js';
import { reserveGeneration } from '../generations/generations.js';
import { countConfined, findSandboxError } from '../hooks/sandbox-rules.js';
import { noteBundles } from '../job/cycle-result.js';
import type { Job } from '../job/job.js';
import type { Offers } from '../select/find-offers.js';
import { selectReleases } from '../select/select-releases.js';
import { type Selection, taken } from '../select/selection.js';
import { pausedError } from '../select/why-not-now-rules.js';
import { allSettled } from '../settled/settled-ledger.js';
import type { CandidateOptions } from '../staging/candidate.js';
import {
  type FetchedReleases,
  type FetchWarnings,
  fetchSelections,
  type StagedTrees,
  stageSelections,
} from '../staging/fetch-and-stage.js';
import { preferRetainedArchives } from '../staging/retained-archives.js';
import {
  countText,
  formatFailures,
  formatFetched,
  formatSelections,
  judgeStep,
} from '../staging/step-text.js';
import type { Host } from '../state/host.js';
import type { CycleRequest } from './cycle-request.js';
import { fetchWhileWanted, findOffersOf } from './fetch-while-wanted.js';
import { noteMirrorFailures } from './refresh-trust.js';
import { isStillOffered, isStillWanted, type Selected } from './still-wanted.js';
import { findLeavable } from './withdrawn-exit.js';
import { withoutTurn } from './without-turn.js';

/**
 * Selects a release for each bundle. The active policy is read after the offered releases: these may come from the network,
 * and other jobs can change the policy during that wait.
 * @param refusedNow as in Selected
 */
export function select(
  job: Job,
  request: CycleRequest,
  refusedNow: ReadonlyMap<string, BundleResult>,
): Promise<Selected> {
  const { host } = job;
  return job.progress.step('select', async () => {
    const offers = await withoutTurn(job, request, (signal) => findOffersOf(job, signal));
    const active = readPartialPolicy(host);
    const leavable = await findLeavable(host, active.policy, offers);
    const selections = selectReleases(host, offers, {
      ...{ active: active.policy?.bundles ?? new Map(), force: request.force, refusedNow, leavable },
    });
    noteSelections(job, selections);
    return { value: { active, selections, refusedNow, leavable }, text: formatSelections(selections) };
  });
}

/**
 * True when the cycle selected no release and removes no bundle. A bundle that is no longer configured leaves the policy with
 * the next generation. A pause prevents that generation, and the error of the result states it.
 */
export function isNothingToDo(
  { host, record }: Job,
  { force }: CycleRequest,
  {
    active,
    selected,
  }: { readonly active: ActivePolicy | undefined; readonly selected: readonly Selection[] },
): boolean {
  if (taken(selected).length > 0) return false;
  if (configuresAllBundles(host, active)) return true;
  const what = 'a bundle that is no longer configured';
  const paused = force === 'yes' ? undefined : pausedError(host.ledger.read(), host.clock.nowMs(), what);
  if (paused !== undefined) record.error = paused;
  return paused !== undefined;
}

/** Whether the configuration contains each active bundle. */
function configuresAllBundles(host: Host, active: ActivePolicy | undefined): boolean {
  const names = host.config.bundles.map((one) => one.name);
  return [...(active?.bundles.keys() ?? [])].every((name) => names.includes(name));
}

/** The candidate generation under construction: its number, its staging directory and the active policy that it replaces. */
export interface Draft extends CandidateOptions, Pick<CheckAllOptions, 'current' | 'settled'> {
  readonly force: 'yes' | 'no';
  /** The active policy; undefined before the first activation. */
  readonly policy: ActivePolicy | undefined;
  readonly client: Host['client'];
}

/** Reserves the next generation number, and creates its directory in staging. */
export function openDraft(
  { host, area }: Job,
  { force, signal }: CycleRequest,
  active: PartialPolicy,
): Draft {
  const { policy, lost } = active;
  const { generation, mtimeSeconds } = reserveGeneration(host);
  // Retained archives may contain the lost bundles. `--force` fetches everything again.
  const keptHelps = lost.length > 0 && force === 'no';
  return {
    ...{ generation, mtimeSeconds, force, signal, policy },
    staging: area.directory(String(generation)),
    active: listRetainedBundles(host, active),
    settled: allSettled(host.ledger.read()),
    client: keptHelps ? preferRetainedArchives(host, { canDownload: true }) : host.client,
    prefer: force === 'yes' ? 'archive' : keptHelps ? 'retained' : 'delta',
    ...(policy === undefined ? {} : { current: policy.generation }),
  };
}

/**
 * Downloads the selected releases. Other jobs can run meanwhile.
 * @returns undefined when the selection is outdated: another generation is active, an operator blocked a release, or the
 *   repository withdrew a selected or active release. Partial downloads stay, and the next attempt resumes them.
 */
export async function fetchReleases(
  job: Job,
  request: CycleRequest,
  { draft, selected }: { readonly draft: Draft; readonly selected: Selected },
): Promise<FetchedReleases | undefined> {
  const { host, progress } = job;
  const { selections: before } = selected;
  const isWanted = (offers?: Offers): boolean =>
    isStillWanted(host, request.force, selected) &&
    (offers === undefined || isStillOffered(host, request.force, { ...selected, offers }));
  const download = (signal: AbortSignal): Promise<FetchedReleases> =>
    fetchSelections({ ...host, client: draft.client }, progress, before, { ...draft, signal });
  return progress.step<FetchedReleases | undefined>('fetch', async () => {
    const value = await withoutTurn(job, request, (signal) =>
      fetchWhileWanted(job, { ...request, signal }, { download, isWanted }),
    );
    if (value === undefined || !isWanted())
      return { value: undefined, text: 'not wanted any more, so selected again', verdict: 'warn' };
    recordFetchWarnings(job, value);
    const change = { before, after: value.selections };
    return { value, text: formatFailures(change, formatFetched(value)), verdict: judgeStep(change) };
  });
}

/**
 * Runs the step `stage`: unpacks and verifies the tree of each fetched release.
 * An error of one release becomes the result of its bundle, which keeps its active release.
 */
export function stageTrees(job: Job, draft: Draft, fetched: FetchedReleases): Promise<StagedTrees> {
  const { host, progress } = job;
  const before = fetched.selections;
  return progress.step('stage', async () => {
    const value = await stageSelections({ ...host, client: draft.client }, progress, fetched, draft);
    recordFetchWarnings(job, value);
    const change = { before, after: value.selections };
    const text = `${countText(value.staged.size, 'bundle')} unpacked`;
    return { value, text: formatFailures(change, text), verdict: judgeStep(change) };
  });
}

function recordFetchWarnings(job: Job, { mirrorFailures, warnings }: FetchWarnings): void {
  noteMirrorFailures(job, mirrorFailures);
  job.record.warnings.push(...warnings);
}

/** Reports the verification. Staging verified each file when it wrote it, so this step reads none. */
export function reportVerified({ progress }: Job, { staged }: StagedTrees): Promise<void> {
  return progress.step('verify', () => {
    const files = [...staged.values()].reduce((sum, one) => sum + one.manifest.files.length, 0);
    const text = `${countText(files, 'file')} ${files === 1 ? 'matches' : 'match'} the signed manifest`;
    return { value: undefined, text, verdict: files > 0 ? 'ok' : 'skip' };
  });
}

/**
 * Runs the step `check` and adds warnings of the sandbox to the record of the job.
 * @param before the selections after the step `stage`
 * @returns the candidate without the bundles that a check refused
 * @throws WritError DISK_* where the candidate cannot be built
 */
export function check(
  { host, progress, record }: Job,
  draft: CheckAllOptions,
  before: readonly Selection[],
): Promise<CheckedCandidate> {
  return progress.step('check', async () => {
    const value = await checkAll(host, before, draft);
    record.warnings.push(...warnOfSandbox(host));
    const verdict = judgeStep({ before, after: value.selections });
    return { value, ...checkStep(value.checks, verdict) };
  });
}

/** A warning if commands ran with the rights of the agent although the sandbox worked on this host before. */
function warnOfSandbox({ sandbox, config, ledger }: Job['host']): Problem[] {
  const status = sandbox.status();
  if (status.withoutIt !== 'unconfined') return [];
  const use = { commands: countConfined(config), hasWorked: ledger.read().sandboxWorked === true };
  const error = findSandboxError(status, use);
  return error === undefined ? [] : [problemOf(error)];
}

/**
 * Runs the step `canary`, and adds its refusals and warnings to the record of the job.
 * @returns the candidate without the bundles that a canary refused
 */
export async function askCanaries(
  job: Job,
  draft: CheckAllOptions & Pick<Draft, 'force'>,
  checked: CheckedCandidate,
): Promise<CheckedCandidate> {
  const asked = await job.progress.step('canary', () => canaryStep(job.host, checked, draft));
  noteSelections(job, asked.selections);
  job.record.warnings.push(...asked.warnings);
  return asked;
}

function noteSelections({ record }: Job, selections: readonly Selection[]): void {
  noteBundles(
    record,
    selections.map((one) => one.result),
  );
}
