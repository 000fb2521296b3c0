// What is wrong with the workers just now, read from the ledger: who was not told, whose set nobody could read, and
// where somebody is missing. Reads only; a cycle and the status say the same by it.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { WritError } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';
import { dueWorkers, groupOf, nextTellAtMs, workerOf } from './worker-ledger.js';

/** @returns WORKER_UNREACHABLE, WORKER_REFUSED, WORKER_UNCONFIRMED and WORKERS_MISSING as they are now; none when all is well */
export function dueProblems({ ledger, config }: Pick<Host, 'ledger' | 'config'>): Problem[] {
  const read = ledger.read();
  return [
    ...unreadSets(read),
    ...notTold(read),
    ...refusing(read),
    ...unproven(read, config.workers),
    ...missing(read, config.workers),
  ];
}

function unreadSets({ unreadSets: sets = {} }: Ledger): Problem[] {
  return Object.entries(sets).map(([group, { text, sinceMs }]) => unreachable(text, { group, sinceMs }));
}

function notTold(ledger: Ledger): Problem[] {
  return [...dueWorkers(ledger)].flatMap((key) => {
    const entry = ledger.workers[key];
    if (entry === undefined) return [];
    const { wanted: generation, text, tries } = entry;
    const when = { generation, tries, nextTellAtMs: nextTellAtMs(entry) };
    const facts = { group: groupOf(key), worker: workerOf(key), ...when };
    return [unreachable(`${key}: ${text}`, facts)];
  });
}

/** Whoever says no to what is active, and could not be helped by going back. */
function refusing({ workers }: Ledger): Problem[] {
  return Object.entries(workers).flatMap(([key, { state, wanted, text, goneAtMs }]) => {
    if (state !== 'refused' || goneAtMs !== undefined) return [];
    const facts = { group: groupOf(key), worker: workerOf(key), generation: wanted };
    return [problemOf(new WritError('WORKER_REFUSED', `${key}: ${text}`, { facts }))];
  });
}

/** Where proof is required, a worker that was only told stays a problem: the next poll proves nothing. */
function unproven({ workers }: Ledger, groups: Host['config']['workers']): Problem[] {
  return groups.flatMap(({ name, confirm }) => {
    const told = Object.entries(workers).some(
      ([key, { state, goneAtMs }]) => groupOf(key) === name && state === 'told' && goneAtMs === undefined,
    );
    return confirm === 'required' && told ? [problemOf(workerUnconfirmed(name))] : [];
  });
}

/** A group with `confirm: required` of which nobody proved the generation. */
export function workerUnconfirmed(group: string): WritError {
  const text = `group ${group}: workers were told, none proved that it uses the generation`;
  return new WritError('WORKER_UNCONFIRMED', text, { facts: { group } });
}

/** A worker that was not told, or a set that nobody could read. */
export function unreachable(message: string, facts: Record<string, unknown>): Problem {
  return problemOf(new WritError('WORKER_UNREACHABLE', message, { facts }));
}

/** A set that nobody could read is another problem than one with too few workers. */
function missing({ workers, unreadSets: unread = {} }: Ledger, groups: Host['config']['workers']): Problem[] {
  const there = Object.entries(workers).filter(([, one]) => one.goneAtMs === undefined);
  return groups.flatMap((group) => {
    const actual = there.filter(([key]) => groupOf(key) === group.name).length;
    return unread[group.name] === undefined ? tooFew(group, actual).problem : [];
  });
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
  const said = [problemOf(new WritError('WORKERS_MISSING', text, { facts: { group, expected, actual } }))];
  return expected === 0 ? { problem: [], warning: said } : { problem: said, warning: [] };
}
