// Notifying workers that the previous generation is back: in full verbs, everybody who may have read the other one, those
// included that refused it or are gone since. Whoever is dead is started again where `onDead` says so. What even this
// does not repair is thrown, and ends with a block.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { isWritError, toWritError } from '../../core/errors.js';
import type { MoveResult } from '../job/cycle-result.js';
import type { CycleStory } from '../job/progress.js';
import { noteLoadPending, withLoaded } from '../notify/boot-loaders.js';
import { lookAfter, revive } from '../notify/dead-workers.js';
import type { NotifyContext } from '../notify/notify-context.js';
import { notifyWorkers, provenBy, unreadOf } from '../notify/notify-steps.js';
import { verbsTo } from '../notify/notify-verbs.js';
import { problemsIn, warningsIn, workerFindings } from '../notify/pending-problems.js';
import { runProbes } from '../notify/probe-workers.js';
import { unproven } from '../notify/prove.js';
import { groupsIn } from '../notify/refusal.js';
import { type LoadReport, runLoaders } from '../notify/run-loaders.js';
import {
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

/**
 * @param progress of the move; left out where nobody knows it: everybody is notified
 * @throws WritError LOADER_*, WORKER_REFUSED, WORKER_DIED, PROBE_*: somebody cannot go back
 */
export async function notifyRestored(
  host: Host,
  story: Pick<CycleStory, 'nextNotificationId'>,
  move: MoveBack,
  progress: MoveProgress | undefined,
): Promise<Pick<MoveResult, 'workers' | 'problems' | 'warnings'>> {
  const { groups } = move;
  const { clock } = host;
  const context = contextBack(host, story, move, progress);
  const unreached = await loadBack(host, context);
  const heard = await notifyWorkers(host, { ...context, unreached });
  const notified = heard.flatMap((one) => one.results);
  noteWorkers(host, notified);
  noteUnread(host, unreadOf(heard));
  const living = await lookAfter(groups, notified, { clock, signal: context.signal });
  noteWorkers(host, living);
  const revived = await revive(living, { groups, target: context.target, clock });
  const workers = await proveBack(host, context, revived);
  noteWorkers(host, workers);
  const findings = workerFindings(host);
  return { workers, problems: problemsIn(findings), warnings: warningsIn(findings) };
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

/** "Not now" must not block the policy that is back: its loaders run later, and LOADER_PENDING says so until then. */
async function loadBack(host: Host, context: NotifyContext): Promise<LoadReport['unreached'] | undefined> {
  try {
    const { unreached } = await runLoaders(host, context);
    host.ledger.write(withLoaded(host, host.ledger.read(), context.groups));
    return unreached;
  } catch (error) {
    if (!isWritError(error) || error.code !== 'LOADER_DEFERRED') throw error;
    noteLoadPending(host);
    return undefined;
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
      proofs: 'last',
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
