// Notifying workers that the previous generation is back: in full verbs, everybody who may have read the other one, those
// included that refused it or are gone since. Whoever is dead is started again where `onDead` says so. What even this
// does not repair is thrown, and ends with a block.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { isWritError, toWritError, type WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { affectsGroup } from '../../core/release/affected-groups.js';
import type { MoveResult } from '../job/cycle-result.js';
import type { CycleStory } from '../job/progress.js';
import { noteLoadPending, withLoaded } from '../notify/boot-loaders.js';
import { livenessOf, lookAfter, revive } from '../notify/dead-workers.js';
import type { NotifyContext } from '../notify/notify-context.js';
import { noteStep, notifyWorkers, provenBy, unreadOf } from '../notify/notify-steps.js';
import { changesTo, verbsTo } from '../notify/notify-verbs.js';
import { problemsIn, warningsIn, workerFindings } from '../notify/pending-problems.js';
import { runProbes } from '../notify/probe-workers.js';
import { unproven } from '../notify/prove.js';
import { groupsIn } from '../notify/refusal.js';
import { withSecondProbe } from '../notify/repeated-probe-rules.js';
import {
  asNotReached,
  isRepeatedByLoader,
  type RefusalBack,
  repeatedRefusals,
} from '../notify/repeated-refusal-rules.js';
import { type LoadReport, runLoaders } from '../notify/run-loaders.js';
import {
  acceptedGeneration,
  groupOf,
  noteUnread,
  noteWorkers,
  type VerbOf,
  wantGeneration,
  withWorkers,
  workerKey,
} from '../notify/worker-ledger.js';
import type { Host } from '../state/host.js';
import type { Ledger, WorkerLedger } from '../state/ledger.js';
import { contextOf, type Move, type MoveProgress } from './move.js';

export type MoveBack = Move & { readonly from: number };

export interface RestoredWorkers extends Pick<MoveResult, 'workers' | 'problems' | 'warnings'> {
  /** The generation that is back was refused with the text of the refusal before: nobody judged the new one. */
  readonly repeated?: true;
}

export interface WayOfMove {
  /** Left out where nobody knows it: everybody is notified. */
  readonly progress: MoveProgress | undefined;
  /** The refusal of the new generation; left out where nobody refused. */
  readonly forward: WritError | undefined;
}

/** @throws WritError LOADER_*, WORKER_REFUSED, WORKER_DIED, PROBE_*: somebody cannot go back */
export async function notifyRestored(
  host: Host,
  story: Pick<CycleStory, 'nextNotificationId'>,
  move: MoveBack,
  { progress, forward }: WayOfMove,
): Promise<RestoredWorkers> {
  const { groups } = move;
  const { clock } = host;
  const context = contextBack(host, story, move, progress);
  const { unreached, isRepeated } = await loadBack(host, context, forward);
  const heard = await notifyWorkers(host, { ...context, unreached });
  const notified = heard.flatMap((one) => one.results);
  noteWorkers(host, notified);
  noteUnread(host, unreadOf(heard));
  const living = await lookAfter(groups, notified, { clock, signal: context.signal });
  noteWorkers(host, living);
  const repeated =
    forward === undefined
      ? none
      : await repeatedBack(host, move, { forward, results: living, ...given({ before: progress?.before }) });
  const left = living.map((one) =>
    repeated.has(workerKey(one.group, one.worker)) && !isRestarted(groups, one) ? asNotReached(one) : one,
  );
  const revived = await revive(left, { groups, target: context.target, clock });
  const workers = withSecondProbe(groups, await proveBack(host, context, revived), clock.nowMs());
  noteWorkers(host, workers);
  const findings = workerFindings(host);
  const found = { workers, problems: problemsIn(findings), warnings: warningsIn(findings) };
  return isRepeated || repeated.size > 0 ? { ...found, repeated: true } : found;
}

const none: ReadonlySet<string> = new Set();

/** @returns keys of those that refuse what they had taken before, as they refused the new generation, and are not dead */
async function repeatedBack(
  host: Host,
  { groups, from }: MoveBack,
  {
    forward,
    results,
    before,
  }: Pick<RefusalBack, 'forward' | 'results'> & Partial<Pick<MoveProgress, 'before'>>,
): Promise<ReadonlySet<string>> {
  // Before the move, because a worker that has taken the new generation took the previous one before.
  const workers = { ...host.ledger.read().workers, ...before };
  const changedSince = changesTo(host, from);
  const hadAccepted = (one: WorkerResult): boolean => {
    const entry = workers[workerKey(one.group, one.worker)];
    const accepted = entry && acceptedGeneration(entry);
    const config = groups.find((group) => group.config.name === one.group)?.config;
    if (accepted === undefined || config === undefined) return false;
    // An older generation that differs in nothing that this group uses is the same to it.
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

/** Where the user asks for it, a worker that cannot go back is restarted. */
function isRestarted(groups: MoveBack['groups'], { group }: WorkerResult): boolean {
  const { config, driver } = groups.find((one) => one.config.name === group) ?? {};
  return config?.onDead === 'restart' && driver?.restart !== undefined;
}

/** Of whom the probe refuses here stays pending: the block that follows is over some day. */
async function proveBack(
  host: Host,
  context: NotifyContext,
  results: readonly WorkerResult[],
): Promise<WorkerResult[]> {
  try {
    return await provenBy(context.groups, await runProbes(host, context, results), results);
  } catch (error) {
    const known = toWritError(error);
    const groups = groupsIn(known);
    noteWorkers(
      host,
      results.map((one) => unproven(one, groups.includes(one.group) ? known : undefined)),
    );
    throw error;
  }
}

/**
 * "Not now", and a loader that refuses everything, must not block the policy that is back: its loaders run later, and
 * LOADER_PENDING says so until then.
 */
async function loadBack(
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

function contextBack(
  host: Host,
  story: Pick<CycleStory, 'nextNotificationId'>,
  move: MoveBack,
  progress: MoveProgress | undefined,
): NotifyContext {
  return {
    ...contextOf(host, story, move, move.from),
    // Whoever asked for the end of the cycle has not asked for workers between two generations.
    signal: new AbortController().signal,
    manner: {
      // A worker that does not live now did not die of what it used before.
      alive: new Set(),
      also: new Set(progress?.notified?.keys() ?? []),
      verbOf: verbsBack(host, move, progress),
      isSpared: ({ config }, { worker, process }) => {
        const key = workerKey(config.name, worker);
        return isSpared(key, progress) && isSameProcess(progress?.before[key], process);
      },
      restartDead: 'yes',
      notNow: 'is-waited-for',
      proofs: 'last',
      onStep: (keys) => noteStep(host, keys),
    },
  };
}

/** As on the way there; what a worker confirmed before says nothing about what it has read since. */
function verbsBack(host: Host, { from, to }: MoveBack, progress: MoveProgress | undefined): VerbOf {
  const verbs = verbsTo(host, { to: from, from: to });
  return (group, worker) =>
    progress?.notified?.get(workerKey(group.config.name, worker)) ?? verbs(group, worker);
}

/** Who was not notified of the new generation keeps what it has: that is what notifying them one after the other is for. */
function isSpared(key: string, progress: MoveProgress | undefined): boolean {
  return progress?.notified !== undefined && !progress.notified.has(key);
}

/** A process that began during the move may have read at its start what was refused. */
function isSameProcess(before: WorkerLedger | undefined, process: string): boolean {
  return before !== undefined && before.goneAtMs === undefined && (before.process ?? process) === process;
}

/** @returns the ledger in which everybody is to use the generation that is back, and nobody is pending who was spared */
export function wantBack(
  host: Host,
  ledger: Ledger,
  move: MoveBack,
  progress: MoveProgress | undefined,
): Ledger {
  const { groups, from: generation } = move;
  const verbOf = verbsBack(host, move, progress);
  const wanted = wantGeneration(ledger, groups, { generation, nowMs: host.clock.nowMs(), verbOf });
  const spared = Object.entries(progress?.before ?? {}).filter(([key, entry]) =>
    groups.some(
      (group) => groupOf(key) === group.config.name && entry.wanted === generation && isSpared(key, progress),
    ),
  );
  return withWorkers(wanted, spared);
}
