// Repairs a damaged policy: new trees of the same releases, a new generation, and the ordinary swap with its notifications. Each release
// comes from its retained archive, else from the repository; if one is unavailable, an older complete generation replaces the damaged
// one. An existing tree is never written to. Checks do not run again, because the bytes are those that passed them.
import type { CycleEventLine, Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isActivation } from '../../core/cycle/sync-machine.js';
import { isWritError, toWritError, WritError } from '../../core/errors.js';
import { type DamageFound, formatDamageSummary, isLinkDamage } from '../../core/status/scrub-state.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import { activate } from '../activation/activate.js';
import { placeCandidate } from '../activation/place.js';
import type { ExaminedGeneration } from '../generations/examine.js';
import { activeGenerationNumber, reserveGeneration } from '../generations/generations.js';
import { renewOutdatedRecords } from '../generations/renew-release.js';
import { touchIfPossible } from '../generations/touch-trees.js';
import { bundleMoved, type CycleEnd, noteBundles } from '../job/cycle-result.js';
import { type Job, runJob } from '../job/job.js';
import { skipSteps } from '../job/progress.js';
import type { Selection } from '../select/selection.js';
import type { StagingOptions } from '../staging/candidate.js';
import { fetchSelections, type StagedTrees, stageSelections } from '../staging/fetch-and-stage.js';
import { preferRetainedArchives } from '../staging/retained-archives.js';
import { countText } from '../staging/step-text.js';
import type { Host } from '../state/host.js';
import { type ExaminedActive, examineActive } from './examine-active.js';
import { renewRetainedFiles } from './renew-kept.js';
import { fallBackToIntactGeneration } from './repair-by-previous.js';
import {
  failuresIn,
  failuresOfTrees,
  keepRecords,
  moveToRepaired,
  type PolicyPart,
  partsOf,
  repairCandidate,
  selectDamaged,
} from './repair-plan.js';

export interface RepairOptions {
  readonly cycle: string;
  /** `no`: uses only files of this host, and an older generation before the network. */
  readonly download: 'yes' | 'no';
  readonly signal: AbortSignal;
  readonly onEvent?: (event: CycleEventLine) => void;
}

export interface RepairEnd extends CycleEnd {
  /** The damage at the begin of the repair. */
  readonly damage: readonly DamageFound[];
}

/**
 * Scans the active policy and repairs its damage. The caller holds the job lock.
 * @returns undefined if the policy is complete. REPAIR_FAILED, REPAIRED_BY_PREVIOUS and worker refusals are in the result
 * @throws WritError INTERRUPTED, DISK_*, STATE_DAMAGED if the scan itself is impossible
 */
export async function repairActive(host: Host, options: RepairOptions): Promise<RepairEnd | undefined> {
  const active = await examineActive(host, { contents: 'digests', pace: unboundedPace(options.signal) });
  if (active === undefined || active.damage.length === 0) return undefined;
  const onError = (error: unknown, { progress }: Job): WritError => {
    host.log.error({ cycle: progress.cycle, err: error }, 'the damaged policy could not be repaired');
    return repairError(error, active.damage);
  };
  const job = { ...options, trigger: 'repair', firstStep: 'fetch', type: 'repair.result', onError } as const;
  const end = await runJob(host, job, async (opened) => {
    opened.record.fromGeneration = active.current;
    opened.record.warnings.push(damageWarning(active.damage));
    // Throws for a foreign link, which is never replaced or followed.
    activeGenerationNumber(host.paths);
    const reserved = reserveGeneration(host);
    const staging = opened.area.directory(String(reserved.generation));
    await replaceDamagedPolicy(opened, { active, options, ...reserved, staging });
  });
  return { ...end, damage: active.damage };
}

/** A warning with the found damage; the problems of the result are the remaining ones. */
function damageWarning(damage: readonly DamageFound[]): Problem {
  return problemOf(
    new WritError('STATE_DAMAGED', formatDamageSummary(damage), { facts: { found: damage.length } }),
  );
}

function repairError(error: unknown, damage: readonly DamageFound[]): WritError {
  const cause = toWritError(error);
  if (cause.code === 'INTERRUPTED' || cause.code === 'REPAIR_FAILED') return cause;
  const text = `${formatDamageSummary(damage)}; it could not be repaired: ${cause.message}`;
  return new WritError('REPAIR_FAILED', text, { facts: { because: cause.code }, cause });
}

export interface Repair {
  readonly active: ExaminedActive;
  readonly options: Pick<RepairOptions, 'download' | 'signal'>;
  readonly generation: number;
  readonly mtimeSeconds: number;
  readonly staging: string;
}

async function replaceDamagedPolicy(job: Job, repair: Repair): Promise<void> {
  const { host, progress, record } = job;
  const { active, options, staging } = repair;
  const { signal } = options;
  const made = await stageDamaged(job, { ...repair, wanted: active.wanted });
  if (signal.aborted) throw new WritError('INTERRUPTED', 'the repair was ended before its swap');
  const failures = failuresOfTrees(made.selections, made.parts);
  if (failures.length > 0) {
    const back = await fallBackToIntactGeneration({ host, progress, active, failures, staging, signal });
    record.moves.push(back.moved);
    if (isActivation(back.moved.outcome)) record.problems.push(back.problem);
    return noteBundles(record, back.bundles);
  }
  const { candidate, records, replaced } = await repairCandidate(host, made);
  const results = made.selections.map((one) => one.result);
  await skipSteps(progress, ['verify', 'check', 'canary']);
  if (replaced.length === 0 && !active.damage.some(isLinkDamage)) {
    keepRecords(host, records, staging);
    progress.note({ type: 'nothing', outcome: 'unchanged' });
    return noteBundles(record, results);
  }
  const to = repair.generation;
  await progress.step('flush', async () => {
    await placeCandidate(host, candidate, repair);
    keepRecords(host, records, staging);
    return { value: undefined, text: `generation ${to}` };
  });
  const { current, wanted } = active;
  // Trees that the link does not reach now get a newer time when they become active again, as after a rollback.
  if (current !== undefined && current !== wanted.generation)
    await touchIfPossible(host, { comingBack: wanted.generation, inUse: current });
  const moved = await activate(
    host,
    progress,
    moveToRepaired(host, { active, to, replaced, staging, signal }),
  );
  record.moves.push(moved);
  noteBundles(
    record,
    results.map((one) => (replaced.includes(one.bundle) ? bundleMoved(one, moved) : one)),
  );
}

export interface RepairedTrees extends StagedTrees {
  /** The parts after the renewal of their retained files. */
  readonly parts: readonly PolicyPart[];
}

/**
 * Runs the steps fetch and stage, and prefers retained archives of this host.
 * @throws WritError STATE_DAMAGED if no bundle of the generation is configured
 */
export async function stageDamaged(
  { host, progress }: Pick<Job, 'host' | 'progress'>,
  {
    wanted,
    options,
    staging,
    mtimeSeconds,
  }: Omit<Repair, 'active'> & { readonly wanted: ExaminedGeneration },
): Promise<RepairedTrees> {
  const { signal, download } = options;
  const stagingOptions: StagingOptions = {
    ...{ staging, mtimeSeconds, signal, active: new Map(), prefer: 'retained' },
  };
  const renewing = { generation: wanted.generation, staging, signal };
  const keepers = { ...host, client: preferRetainedArchives(host, { canDownload: download !== 'no' }) };
  let parts = partsOf(host, wanted);
  const fetched = await progress.step('fetch', async () => {
    parts = await renewRetainedFiles(host, parts, renewing);
    const selections = await selectDamaged(host, parts, async () => {
      await refreshIfAllowed(host, { ...options, staging });
    });
    const value = await fetchSelections(keepers, progress, selections, stagingOptions);
    return { value, text: countText(value.fetched.size, 'release'), verdict: verdictOf(value.selections) };
  });
  return progress.step('stage', async () => {
    const value = await stageSelections(keepers, progress, fetched, stagingOptions);
    const text = `${countText(value.staged.size, 'bundle')} unpacked`;
    return { value: { ...value, parts }, text, verdict: verdictOf(value.selections) };
  });
}

/** Refreshes the metadata, unless downloads are off: only fresh metadata can identify a release with a lost record. */
async function refreshIfAllowed(
  host: Host,
  { download, signal, staging }: Repair['options'] & Pick<Repair, 'staging'>,
): Promise<void> {
  if (download === 'no') return;
  try {
    await refreshAfterRenewal(host, { signal, staging });
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error }, 'no fresh metadata for the repair');
  }
}

/**
 * Refreshes the metadata for a repair. The records of the active releases are renewed before, because a cycle that was killed after
 * its refresh left them outdated, and this refresh may replace the metadata that still lists these releases.
 */
export async function refreshAfterRenewal(
  host: Host,
  { signal, staging }: Pick<Repair, 'staging'> & { readonly signal: AbortSignal },
): Promise<void> {
  renewOutdatedRecords(host, () => staging);
  await host.client.refresh({ signal });
}

function verdictOf(selections: readonly Selection[]): 'ok' | 'fail' {
  return failuresIn(selections).length > 0 ? 'fail' : 'ok';
}
