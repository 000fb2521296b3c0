// Finds worker processes that ended between a swap and its commit. The commit records them, and the result of the move lists
// them. A successful probe does not show such an end, because the restarted process answers it. Writes nothing.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { WritError } from '../../core/errors.js';
import { formatWorkerEnds } from '../../core/status/host-health.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { type RunsObservation, withObservedRuns } from '../runs/note-runs.js';
import { observeRuns } from '../runs/observe-runs.js';
import type { Host } from '../state/host.js';
import type { Ledger, ProcessEnd } from '../state/ledger.js';
import type { Move, MoveProgress } from './move.js';

/** Observes the process runs right before the commit. The bake time, which begins at the swap, counts the ends found. */
export async function observeEnds(host: Host, { groups }: Pick<Move, 'groups'>): Promise<RunsObservation> {
  const observed = await observeRuns(host, (name) => groups.some((one) => one.config.name === name));
  return { observed, bootId: readBootId(), nowMs: host.clock.nowMs() };
}

interface ObservedEnds {
  readonly endRuns: RunsObservation;
  readonly notified: MoveProgress['notified'] | undefined;
}

export interface NotedEnds {
  readonly ledger: Ledger;
  /** WORKER_RESTARTED, one for each worker with a process that ended. */
  readonly warnings: readonly Problem[];
}

/**
 * Adds the ends of processes to the ledger of a commit. A restart by this move is not counted as unexplained.
 * @param committed the ledger of the commit, with the bake times that begin
 */
export function withEndsInMove(
  host: Host,
  committed: Ledger,
  { endRuns, to, notified }: Pick<Move, 'to'> & ObservedEnds,
): NotedEnds {
  const ledger = withObservedRuns(host, committed, endRuns);
  const warnings = Object.entries(ledger.runs ?? {}).flatMap(([worker, { ends }]): Problem[] => {
    const known = committed.runs?.[worker]?.ends ?? [];
    const found = ends.filter((one) => !known.includes(one));
    const isOurs = notified?.get(worker) === 'restart';
    const count = (kind: ProcessEnd['kind']): number => found.filter((one) => one.kind === kind).length;
    const abnormal = count('abnormal');
    const unexplained = Math.max(0, count('unrecorded') - (isOurs ? 1 : 0));
    if (abnormal + unexplained === 0) return [];
    const text = `${worker} ${formatWorkerEnds({ abnormal, unexplained })} while generation ${to} was activated`;
    const facts = { worker, abnormal, unexplained, generation: to };
    return [problemOf(new WritError('WORKER_RESTARTED', text, { facts }))];
  });
  return { ledger, warnings };
}
