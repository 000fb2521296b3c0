// Notifies workers after a restore. Every worker that may have read the refused generation is notified in full, also if it
// refused that generation or has left its group since. Dead workers are restarted if `onDead` asks for it. A remaining failure
// is thrown and ends with a block.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { isWritError, toWritError, type WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { affectsGroup } from '../../core/release/affected-groups.js';
import type { MoveResult } from '../job/cycle-result.js';
import type { CycleProgress } from '../job/progress.js';
import { noteLoadPending, withLoaded } from '../notify/boot-loaders.js';
import { withoutConfirmation } from '../notify/confirm-by-probe.js';
import { livenessOf, recheckLiveness, restartDeadWorkers } from '../notify/dead-workers.js';
import type { NotifyContext } from '../notify/notify-context.js';
import { applyProbeResults, noteStep, notifyWorkers, unreadGroups } from '../notify/notify-steps.js';
import { changesTo, verbsTo } from '../notify/notify-verbs.js';
import { problemsIn, warningsIn, workerFindings } from '../notify/pending-problems.js';
import { runProbes } from '../notify/probe-workers.js';
import { withSecondProbe } from '../notify/repeated-probe-rules.js';
import {
  asUnreachable,
  isRepeatedByLoader,
  type RestoreRefusals,
  repeatedRefusals,
} from '../notify/repeated-refusal-rules.js';
import { type LoadReport, runLoaders } from '../notify/run-loaders.js';
import {
  acceptedGeneration,
  groupOf,
  noteUnreadGroups,
  noteWorkers,
  type VerbOf,
  withWantedGeneration,
  withWorkers,
  workerKey,
} from '../notify/worker-ledger.js';
import { refusingGroupsIn } from '../notify/worker-refusal.js';
import type { Host } from '../state/host.js';
import type { Ledger, WorkerLedger } from '../state/ledger.js';
import { contextOf, type Move, type MoveProgress } from './move.js';

export type RestoreMove = Move & { readonly from: number };

export interface RestoredWorkers extends Pick<MoveResult, 'workers' | 'problems' | 'warnings'> {
  /** The restored generation was refused with the same text, so that the refusal is no verdict on the new generation. */
  readonly repeated?: true;
}

export interface RestoreContext {
  /** Undefined after a crash, when it is unknown; every affected worker is notified then. */
  readonly progress: MoveProgress | undefined;
  /** The refusal of the new generation; undefined if no worker or command refused it. */
  readonly forward: WritError | undefined;
}

/**
 * Notifies and probes the workers of the restored generation, and restarts dead ones.
 * @throws WritError LOADER_*, WORKER_REFUSED, WORKER_DIED, PROBE_* if a worker cannot use the restored generation
 */
export async function notifyRestored(
  host: Host,
  steps: Pick<CycleProgress, 'nextNotificationId'>,
  move: RestoreMove,
  { progress, forward }: RestoreContext,
): Promise<RestoredWorkers> {
  const { groups } = move;
  const { clock } = host;
  const context = restoreNotifyContext(host, steps, move, progress);
  const { unreached, isRepeated } = await loadRestored(host, context, forward);
  const groupReports = await notifyWorkers(host, { ...context, unreached });
  const notified = groupReports.flatMap((one) => one.results);
  noteWorkers(host, notified);
  noteUnreadGroups(host, unreadGroups(groupReports));
  const living = await recheckLiveness(groups, notified, { clock, signal: context.signal });
  noteWorkers(host, living);
  const repeated =
    forward === undefined
      ? none
      : await findRepeatedRefusals(host, move, {
          forward,
          results: living,
          ...given({ before: progress?.before }),
        });
  const left = living.map((one) =>
    repeated.has(workerKey(one.group, one.worker)) && !isRestarted(groups, one) ? asUnreachable(one) : one,
  );
  const revived = await restartDeadWorkers(left, { groups, target: context.target, clock });
  const workers = withSecondProbe(groups, await probeRestored(host, context, revived), clock.nowMs());
  noteWorkers(host, workers);
  const findings = workerFindings(host);
  const found = { workers, problems: problemsIn(findings), warnings: warningsIn(findings) };
  return isRepeated || repeated.size > 0 ? { ...found, repeated: true } : found;
}

const none: ReadonlySet<string> = new Set();

/**
 * @returns keys of the living workers that refuse a generation they had accepted before, with the same text with which they
 *   refused the new one
 */
async function findRepeatedRefusals(
  host: Host,
  { groups, from }: RestoreMove,
  {
    forward,
    results,
    before,
  }: Pick<RestoreRefusals, 'forward' | 'results'> & Partial<Pick<MoveProgress, 'before'>>,
): Promise<ReadonlySet<string>> {
  // Use the entries from before the move: a worker that accepted the new generation had accepted the previous one then.
  const workers = { ...host.ledger.read().workers, ...before };
  const changedSince = changesTo(host, from);
  const hadAccepted = (one: WorkerResult): boolean => {
    const entry = workers[workerKey(one.group, one.worker)];
    const accepted = entry && acceptedGeneration(entry);
    const config = groups.find((group) => group.config.name === one.group)?.config;
    if (accepted === undefined || config === undefined) return false;
    // An older accepted generation counts too if it differs in no path that this group uses.
    const changed = accepted === from ? [] : changedSince(accepted);
    return changed !== undefined && !affectsGroup(config, changed);
  };
  const repeated = new Set(repeatedRefusals({ forward, results, hadAccepted }));
  for (const { group, worker } of results) {
    const driver = groups.find(({ config }) => config.name === group)?.driver;
    const key = workerKey(group, worker);
    if (repeated.has(key) && driver !== undefined && (await livenessOf(driver, worker)) === 'dead')
      repeated.delete(key);
  }
  return repeated;
}

/** @returns true if the configuration asks for a restart of a worker that cannot load the restored generation */
function isRestarted(groups: RestoreMove['groups'], { group }: WorkerResult): boolean {
  const { config, driver } = groups.find((one) => one.config.name === group) ?? {};
  return config?.onDead === 'restart' && driver?.restart !== undefined;
}

/** Probes the restored workers. A refused worker stays pending, so that it is notified again after the block ends. */
async function probeRestored(
  host: Host,
  context: NotifyContext,
  results: readonly WorkerResult[],
): Promise<WorkerResult[]> {
  try {
    return await applyProbeResults(context.groups, await runProbes(host, context, results), results);
  } catch (error) {
    const known = toWritError(error);
    const groups = refusingGroupsIn(known);
    noteWorkers(
      host,
      results.map((one) => withoutConfirmation(one, groups.includes(one.group) ? known : undefined)),
    );
    throw error;
  }
}

/**
 * Runs the loaders of the restored generation. A deferral, or a loader that also refuses the restored policy, must not block
 * that policy: the loaders run again later, and LOADER_PENDING is reported until then.
 */
async function loadRestored(
  host: Host,
  context: NotifyContext,
  forward: WritError | undefined,
): Promise<{ readonly unreached?: LoadReport['unreached']; readonly isRepeated: boolean }> {
  try {
    const { unreached } = await runLoaders(host, context);
    host.ledger.write(withLoaded(host, host.ledger.read(), context.groups));
    return { unreached, isRepeated: false };
  } catch (error) {
    if (!isWritError(error)) throw error;
    const isRepeated =
      forward !== undefined && isRepeatedByLoader(forward, error, host.ledger.read().unloaded);
    if (error.code !== 'LOADER_DEFERRED' && !isRepeated) throw error;
    noteLoadPending(host);
    return { isRepeated };
  }
}

function restoreNotifyContext(
  host: Host,
  steps: Pick<CycleProgress, 'nextNotificationId'>,
  move: RestoreMove,
  progress: MoveProgress | undefined,
): NotifyContext {
  return {
    ...contextOf(host, steps, move, move.from),
    // A stop request does not interrupt a restore: workers would be left between two generations.
    signal: new AbortController().signal,
    behavior: {
      // A worker that is dead now did not die of the generation that it used before.
      alive: new Set(),
      also: new Set(progress?.notified?.keys() ?? []),
      verbOf: restoreVerbs(host, move, progress),
      isSpared: ({ config }, { worker, process }) => {
        const key = workerKey(config.name, worker);
        return isSpared(key, progress) && isSameProcess(progress?.before[key], process);
      },
      restartDead: true,
      retryDeferred: true,
      skipStepProbes: true,
      onStep: (keys) => noteStep(host, keys),
    },
  };
}

/**
 * @returns the verb of the forward notification for each notified worker. The confirmation of an older generation cannot
 *   shorten it, because the worker may have read the refused one since
 */
function restoreVerbs(host: Host, { from, to }: RestoreMove, progress: MoveProgress | undefined): VerbOf {
  const verbs = verbsTo(host, { to: from, from: to });
  return (group, worker) =>
    progress?.notified?.get(workerKey(group.config.name, worker)) ?? verbs(group, worker);
}

/** @returns true for a worker that was not notified of the new generation. With rolling notification it keeps its policy. */
function isSpared(key: string, progress: MoveProgress | undefined): boolean {
  return progress?.notified !== undefined && !progress.notified.has(key);
}

/** @returns false for a process that began during the move, because it may have read the refused generation at its start */
function isSameProcess(before: WorkerLedger | undefined, process: string): boolean {
  return before !== undefined && before.goneAtMs === undefined && (before.process ?? process) === process;
}

/** @returns the ledger in which every worker is to use the restored generation, and no spared worker is pending */
export function wantRestored(
  host: Host,
  ledger: Ledger,
  move: RestoreMove,
  progress: MoveProgress | undefined,
): Ledger {
  const { groups, from: generation } = move;
  const verbOf = restoreVerbs(host, move, progress);
  const wanted = withWantedGeneration(ledger, groups, { generation, nowMs: host.clock.nowMs(), verbOf });
  const spared = Object.entries(progress?.before ?? {}).filter(([key, entry]) =>
    groups.some(
      (group) => groupOf(key) === group.config.name && entry.wanted === generation && isSpared(key, progress),
    ),
  );
  return withWorkers(wanted, spared);
}
