// One cycle from refresh to commit, top to bottom (docs/ARCHITECTURE.md, The cycle). Every bundle gets a result of its
// own; the cycle's is the worst. Before the swap nothing that workers can see is touched.
import { isActivation } from '../../core/cycle/sync-machine.js';
import { type ErrorCode, toWritError, WritError } from '../../core/errors.js';
import { sizeText } from '../../core/size-text.js';
import type { Attempt } from '../../core/status/freshness.js';
import { canaryStep } from '../checks/canary-step.js';
import { checkAll, checkStep } from '../checks/check-candidate.js';
import {
  type ActivePolicy,
  bundlesToKeep,
  type PolicyLeft,
  readWhatIsLeft,
} from '../generations/generation-contents.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { reserveGeneration } from '../generations/reserve-generation.js';
import { findUntrusted, untrustedProblems } from '../generations/vouching.js';
import { keepRecords } from '../integrity/repair-plan.js';
import { damageProblems } from '../integrity/standing-damage.js';
import { type CycleEnd, type CycleFindings, emptyFindings, finishCycle } from '../job/cycle-result.js';
import { openStory } from '../job/progress.js';
import { openStagingArea } from '../job/staging-area.js';
import { holdBackPaced } from '../select/pace-groups.js';
import { pausedError } from '../select/pause.js';
import { rememberRefusedBundles, selectReleases } from '../select/select-releases.js';
import { type Selection, taken } from '../select/selection.js';
import { noteSpaceNeeded } from '../select/space-memory.js';
import { assembleCandidate, type CandidateBundle, type CandidateOptions } from '../staging/candidate.js';
import { fetchAll, stageAll } from '../staging/fetch-and-stage.js';
import { keptFirst } from '../staging/kept-archives.js';
import { countText, failuresOr, selectText, stepVerdict } from '../staging/step-text.js';
import type { Host } from '../state/host.js';
import { noteRetryTimes } from '../state/refusals.js';
import type { Cycle, CycleRequest } from './cycle.js';
import { noteMirrorFailures } from './note-mirrors.js';
import { nothingNew } from './nothing-new.js';
import { refreshTrust } from './refresh-trust.js';
import { decideSwap, type Swapped, swapCandidate } from './swap-candidate.js';

/** Runs one cycle. Never rejects: whatever happens is in the result. */
export async function syncCycle(host: Host, request: CycleRequest): Promise<CycleEnd> {
  const story = openStory({ ...request, clock: host.clock });
  const findings = emptyFindings();
  const area = openStagingArea(host.paths, host.durable, story.cycle);
  const cycle: Cycle = { host, story, request, findings, area, refusedNow: new Map() };
  try {
    findings.fromGeneration = activeGenerationNumber(host.paths);
    await refreshTrust(host, story, request, findings);
    for (let attempt = 0; attempt <= host.config.bundles.length; attempt++) {
      if ((await tryCandidate(cycle)) === 'ended') break;
    }
    noteRetryTimes(host, findings.bundles);
  } catch (error) {
    findings.error = toWritError(error);
    host.log.warn({ cycle: story.cycle, err: error }, 'the cycle ended with an error');
  } finally {
    area.remove(host.log);
  }
  noteSpaceNeeded(host, findings.bundles);
  // Also after a refresh that failed: it may have followed the root that took the keys away.
  noteWhatIsWrong(host, findings);
  const refresh = attemptOf(findings);
  return { result: finishCycle(host, story, findings), story, ...(refresh ? { refresh } : {}) };
}

function noteWhatIsWrong(host: Host, findings: CycleFindings): void {
  try {
    findings.problems.push(...untrustedProblems(findUntrusted(host)), ...damageProblems(host));
  } catch (error) {
    host.log.warn({ err: error }, 'the kept releases could not be verified again');
  }
}

/** A delegated role is asked for when a bundle is selected: its refusal is one of metadata all the same. */
function attemptOf({ refresh, bundles }: CycleFindings): Attempt | undefined {
  if (refresh === undefined || refresh.error !== undefined) return refresh;
  const error = [...bundles.values()].find((one) => isMetadataTrouble(one.problem?.code))?.problem;
  return error === undefined ? refresh : { ...refresh, error };
}

function isMetadataTrouble(code: ErrorCode | undefined): boolean {
  return code !== undefined && /^(METADATA|SIGNATURE|DELEGATION)_/.test(code);
}

/** @returns `again` when workers refused some of the new bundles and the others are to be tried without them */
async function tryCandidate(cycle: Cycle): Promise<'ended' | 'again'> {
  const { host, story } = cycle;
  const { force, signal } = cycle.request;
  const left = readWhatIsLeft(host);
  const active = left.policy;
  const selected = await select(cycle, active);
  if (taken(selected).length === 0 && (keepsItsBundles(host, active) || isPaused(cycle))) {
    if (left.error !== undefined) throw left.error;
    await nothingNew(cycle);
    return 'ended';
  }

  const reserved = reserveGeneration(host);
  const options: CandidateOptions = {
    generation: reserved.generation,
    staging: cycle.area.directory(String(reserved.generation)),
    active: bundlesToKeep(host, left),
    mtimeSeconds: reserved.mtimeSeconds,
    signal,
  };
  const { selections, candidate: bundles } = await stageAndCheck(cycle, selected, left, options);
  rememberRefusedBundles(host, selections);
  // A bundle that is damaged is better than one that is gone.
  if (left.error !== undefined && !isReplaced(host, left.lost, bundles)) throw left.error;
  requireNotStopped(signal);

  const decision = await decideSwap(host, { active, bundles, force, signal });
  if (decision.kind === 'none') {
    keepRecords(host, decision.records, options.staging);
    await nothingNew(cycle);
    return 'ended';
  }
  const { generation } = reserved;
  const swapped = await swapCandidate(host, story, { decision, active, bundles, generation, options });
  return settleResults(cycle, selections, swapped);
}

function isReplaced(host: Host, lost: readonly string[], candidate: readonly CandidateBundle[]): boolean {
  const configured = host.config.bundles.map((one) => one.name).filter((name) => lost.includes(name));
  return (
    lost.length > 0 &&
    configured.every((name) => candidate.some((one) => one.staged?.release.bundle === name))
  );
}

/** Who is told to end begins no swap: workers would be told by a process that is going away. */
function requireNotStopped(signal: AbortSignal): void {
  if (signal.aborted) throw new WritError('INTERRUPTED', 'the cycle was ended before its swap');
}

function select(cycle: Cycle, active: ActivePolicy | undefined): Promise<Selection[]> {
  const { host, request, refusedNow, findings } = cycle;
  return cycle.story.step('select', async () => {
    const value = await selectReleases(host, {
      active: active?.bundles ?? new Map(),
      force: request.force,
      refusedNow,
      signal: request.signal,
      onMirrorFailed: (failure) => noteMirrorFailures(cycle, [failure]),
    });
    noteResults(findings, value);
    return { value, text: selectText(value) };
  });
}

/** The steps fetch, stage, verify, check and canary: what is left of the selections, and the candidate they make. */
async function stageAndCheck(
  cycle: Cycle,
  selected: readonly Selection[],
  { policy: active, lost }: PolicyLeft,
  options: CandidateOptions,
): Promise<{ selections: Selection[]; candidate: CandidateBundle[] }> {
  const { host, story, findings } = cycle;
  // What is lost may lie here still; `--force` fetches everything again.
  const keptHelps = lost.length > 0 && cycle.request.force === 'no';
  const client = keptHelps ? keptFirst(host, { download: 'yes' }) : host.client;
  const fetched = await story.step('fetch', async () => {
    const value = await fetchAll({ ...host, client }, story, selected, options);
    noteMirrorFailures(cycle, value.mirrorFailures);
    const bytes = taken(value.selections).reduce((sum, one) => sum + one.target.length, 0);
    const change = { before: selected, after: value.selections };
    return { value, text: failuresOr(change, sizeText(bytes)), verdict: stepVerdict(change) };
  });
  const trees = await story.step('stage', async () => {
    const value = await stageAll(host, fetched.selections, fetched.archives, options);
    const change = { before: fetched.selections, after: value.selections };
    const text = `${countText(value.staged.size, 'bundle')} unpacked`;
    return { value, text: failuresOr(change, text), verdict: stepVerdict(change) };
  });
  await story.step('verify', () => {
    const files = [...trees.staged.values()].reduce((sum, one) => sum + one.manifest.files.length, 0);
    return {
      value: undefined,
      text: `${countText(files, 'file')} ${files === 1 ? 'matches' : 'match'} the signed manifest`,
      verdict: files > 0 ? 'ok' : 'skip',
    };
  });
  const ready = holdBackPaced(host, trees.selections, {
    active,
    staged: trees.staged,
    force: cycle.request.force,
  });
  const checkOptions = {
    ...options,
    staged: trees.staged,
    ...(active === undefined ? {} : { current: active.generation }),
  };
  const checked = await story.step('check', async () => {
    const value = await checkAll(host, ready, checkOptions);
    const verdict = stepVerdict({ before: ready, after: value.selections });
    return { value, ...checkStep(value.checks, verdict) };
  });
  const { selections } = await story.step('canary', () =>
    canaryStep(host, checked, { ...checkOptions, force: cycle.request.force }),
  );
  noteResults(findings, selections);
  const candidate = assembleCandidate(selections, trees.staged, options.active);
  return { selections, candidate };
}

/** A bundle that left the configuration leaves the policy with the next generation: in a pause there is none. */
function isPaused({ host, request, findings }: Cycle): boolean {
  const paused =
    request.force === 'yes' ? undefined : pausedError(host, 'a bundle that is not configured any more');
  if (paused !== undefined) findings.error = paused;
  return paused !== undefined;
}

/** The configuration still names every bundle that is active. */
function keepsItsBundles(host: Host, active: ActivePolicy | undefined): boolean {
  const names = host.config.bundles.map((one) => one.name);
  return [...(active?.bundles.keys() ?? [])].every((name) => names.includes(name));
}

function settleResults(
  cycle: Cycle,
  selections: readonly Selection[],
  { result, blamed }: Swapped,
): 'ended' | 'again' {
  const { findings, refusedNow } = cycle;
  findings.moves.push(result);
  const problem = isActivation(result.outcome) ? undefined : result.problems[0];
  const changed = taken(selections);
  for (const { bundle, result: base } of changed) {
    const entry = { ...base, outcome: result.outcome, ...(problem ? { problem } : {}) };
    findings.bundles.set(bundle.name, entry);
    if (blamed.includes(bundle.name)) refusedNow.set(bundle.name, entry);
  }
  const others = changed.filter((one) => !blamed.includes(one.bundle.name));
  if (result.outcome !== 'rolled-back' || blamed.length === 0 || others.length === 0) return 'ended';
  cycle.story.note({ type: 'retried' });
  return 'again';
}

function noteResults(findings: CycleFindings, selections: readonly Selection[]): void {
  for (const selection of selections) findings.bundles.set(selection.bundle.name, selection.result);
}
