// What is wrong with the workers just now, read from the ledger: who was not told, whose set nobody could read, and
// where somebody is missing. Reads only; a cycle and the status say the same by it.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { type ErrorCode, type ErrorFacts, WritError } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';
import { groupOf, isPending, nextTellAtMs, workerOf } from './worker-ledger.js';

/** @returns WORKER_UNREACHABLE, WORKER_REFUSED, WORKER_UNCONFIRMED and WORKERS_MISSING as they are now; none when all is well */
export function pendingProblems({ ledger, config }: Pick<Host, 'ledger' | 'config'>): Problem[] {
  const { workers, unreadSets = {} } = ledger.read();
  const there = Object.entries(workers).filter(([, one]) => one.goneAtMs === undefined);
  const membersOf = (name: string): WorkerLedger[] =>
    there.filter(([key]) => groupOf(key) === name).map(([, one]) => one);
  const factsOf = (key: string, { wanted: generation }: WorkerLedger): ErrorFacts => {
    return { group: groupOf(key), worker: workerOf(key), generation };
  };
  // Where proof is required, a worker that was only told stays a problem: the next poll proves nothing.
  const lacksProof = ({ name, confirm }: WorkerGroupConfig): boolean =>
    confirm === 'required' && membersOf(name).some(({ state }) => state === 'told');
  return [
    ...Object.entries(unreadSets).map(([group, { text, sinceMs }]) => unreachable(text, { group, sinceMs })),
    ...there
      .filter(([, one]) => isPending(one))
      .map(([key, one]) => {
        const when = { tries: one.tries, nextTellAtMs: nextTellAtMs(one) };
        return unreachable(`${key}: ${one.text}`, { ...factsOf(key, one), ...when });
      }),
    // Whoever says no to what is active, and could not be helped by going back.
    ...there
      .filter(([, { state }]) => state === 'refused')
      .map(([key, one]) => problem('WORKER_REFUSED', `${key}: ${one.text}`, factsOf(key, one))),
    ...config.workers.filter(lacksProof).map(({ name }) => workerUnconfirmed(name)),
    // A set that nobody could read is another problem than one with too few workers.
    ...config.workers
      .filter(({ name }) => unreadSets[name] === undefined)
      .flatMap((group) => tooFew(group, membersOf(group.name).length).problem),
  ];
}

function problem(code: ErrorCode, text: string, facts: ErrorFacts): Problem {
  return problemOf(new WritError(code, text, { facts }));
}

/** A worker that was not told, or a set that nobody could read. */
export function unreachable(text: string, facts: ErrorFacts): Problem {
  return problem('WORKER_UNREACHABLE', text, facts);
}

/** A group with `confirm: required` of which nobody proved the generation. */
export function workerUnconfirmed(group: string): Problem {
  const text = `group ${group}: workers were told, none proved that it uses the generation`;
  return problem('WORKER_UNCONFIRMED', text, { group });
}

/** A problem for a group with fewer workers than its `min`, a warning for one with none where nobody must be there. */
export function tooFew(
  { name: group, reset }: WorkerGroupConfig,
  actual: number,
): { readonly problem: readonly Problem[]; readonly warning: readonly Problem[] } {
  if (reset === undefined || actual >= Math.max(reset.min, 1)) return { problem: [], warning: [] };
  const { min: expected } = reset;
  const text =
    expected === 0
      ? `group ${group} has no worker just now`
      : `group ${group} has ${actual} workers just now, ${expected} must be there`;
  const said = [problem('WORKERS_MISSING', text, { group, expected, actual })];
  return expected === 0 ? { problem: [], warning: said } : { problem: said, warning: [] };
}
