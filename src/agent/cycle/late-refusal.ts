// A worker refuses what is active, apart from the cycle that brought it: it was away then, or slow. The generation is left
// as in that cycle: remembered, the previous one back, everybody notified, in a cycle of its own where none runs. Where nothing
// can be gone back to, or going back would not help this worker, the policy stays and the worker is reported.
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { isWritError, type WritError } from '../../core/errors.js';
import { affectsGroup, changedPaths } from '../../core/release/affected-groups.js';
import { withoutPrevious } from '../activation/commit-ledger.js';
import { restorePrevious } from '../activation/restore.js';
import { type ActivePolicy, readActivePolicy, releasesBrought } from '../generations/generation-contents.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { chooseTarget } from '../generations/rollback-target.js';
import {
  bundleBefore,
  bundleMoved,
  type CycleEnd,
  type MoveResult,
  noteBundles,
} from '../job/cycle-result.js';
import { endOf, type Job, withJob } from '../job/job.js';
import { newCycleId } from '../job/progress.js';
import { groupsIn, resultsIn } from '../notify/refusal.js';
import { groupOf, workerKey } from '../notify/worker-ledger.js';
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
 * Leaves what is active for the generation before it.
 * @param options.force `yes`: in a pause too
 * @returns undefined where it stays: paused, blocked, nothing to go back to, or a worker that has used it before
 */
export async function leaveRefused(
  { host, story, area }: Job,
  { refusal, force }: { readonly refusal: WritError; readonly force: 'yes' | 'no' },
): Promise<Left | undefined> {
  const active = readActivePolicy(host.paths);
  if (active === undefined || host.ledger.read().blocked !== undefined) return undefined;
  // As it is in a pause, the policy stays: what is to be done about the worker is a person's.
  if (force === 'no' && isPaused(host)) return undefined;
  const groups = groupsIn(refusal);
  if (hasUsedIt(host, refusal, active.generation.number)) return undefined;
  const target = await targetOrNone(host, active);
  if (target === undefined) return undefined;
  const releases = releasesBrought(host.paths, {
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
    story,
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
 * A worker that confirmed this generation before has a fault of its own: going back would not help. Of a whole group one
 * such worker is enough.
 */
function hasUsedIt(host: Host, refusal: WritError, generation: number): boolean {
  const refused = resultsIn(refusal)
    .filter((one) => one.state === 'refused' || one.state === 'unreachable')
    .map((one) => workerKey(one.group, one.worker));
  const groups = groupsIn(refusal);
  const asked = Object.entries(host.ledger.read().workers).filter(([key]) =>
    refused.length > 0 ? refused.includes(key) : groups.includes(groupOf(key)),
  );
  const confirmed = asked.filter(([, one]) => one.confirmed === generation);
  return refused.length > 0 ? confirmed.length === asked.length && asked.length > 0 : confirmed.length > 0;
}

async function targetOrNone(host: Host, active: ActivePolicy): Promise<ActivePolicy | undefined> {
  try {
    return await chooseTarget(host, active, { force: 'no', refused: 'skipped' });
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn(
      { err: error },
      'a worker refuses the active generation, and there is no earlier one to restore',
    );
    return undefined;
  }
}

/** A backup of itself is none. */
function forgetPrevious(host: Host, generation: number): void {
  const ledger = host.ledger.read();
  // A way back that failed before its link has left everything as it was.
  if (ledger.previous === generation && activeGenerationNumber(host.paths) === generation)
    host.ledger.write(withoutPrevious(ledger));
}

/** A worker refused what was active: this job has left it. */
export function noteLeft({ record }: Job, { moved, bundles }: Left): void {
  record.moves.push(moved);
  noteBundles(record, bundles);
}

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

/** Who refuses, what, and what could be gone back to. */
function situationOf(host: Host, refusal: WritError): string {
  const { settled, previous, blocked } = host.ledger.read();
  const refused = resultsIn(refusal).filter((one) => one.state === 'refused');
  const noes = refused.map((one) => workerKey(one.group, one.worker));
  const now = [settled, previous, blocked?.atMs, isPaused(host)];
  return JSON.stringify([...now, refusal.code, groupsIn(refusal), noes]);
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
