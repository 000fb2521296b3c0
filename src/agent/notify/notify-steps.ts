// The step reset for the groups that a generation concerns, and what all that was said proves. Each verdict binds: what says
// no throws, and the caller puts the previous generation back. Writes each answer as it arrives, for callers that ask for it.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { isWritError, WritError } from '../../core/errors.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { seenAlive } from './dead-workers.js';
import type { NotifyContext } from './notify-context.js';
import { type NotifiedGroup, notifyGroups } from './notify-group.js';
import { asksEach, type Probed, runProbes } from './probe-workers.js';
import { noCodes, refusal } from './refusal.js';
import { mapBounded, maxParallelNotices, readMembers } from './worker-groups.js';
import { hasAnswered, noteWorkers, withNotificationBegun, workerKey } from './worker-ledger.js';

export interface ResetReport {
  readonly results: readonly WorkerResult[];
  /** Names of the groups of which nobody could say who is in them, with the reason. */
  readonly unread: ReadonlyMap<string, string>;
}

/**
 * Notifies every worker of the groups, each in its way, and judges the answers.
 * @throws WritError WORKER_REFUSED, WORKER_DIED naming each worker that cannot live with it, PROBE_FAILED and
 *   PROBE_BROKEN of a rolling step; `facts.results` has every answer
 */
export async function resetWorkers(host: Host, context: NotifyContext): Promise<ResetReport> {
  let groups = await notifyWorkers(host, context);
  requireNobodySaysNo(groups);
  if (context.manner?.newcomers !== undefined && !context.signal.aborted) {
    groups = await notifyNewcomers(host, context, groups);
    requireNobodySaysNo(groups);
  }
  const results = groups.flatMap((one) => one.results);
  return { results, unread: unreadOf(groups) };
}

/** @returns names of the groups whose sets nobody could read, with the reason */
export function unreadOf(groups: readonly NotifiedGroup[]): ReadonlyMap<string, string> {
  return new Map(
    groups.flatMap(({ group, unlisted }) =>
      unlisted === undefined ? [] : [[group.config.name, unlisted.message] as const],
    ),
  );
}

/** A worker may have read the generation before the swap, and be listed only behind it: nobody has notified it. */
async function notifyNewcomers(
  host: Host,
  context: NotifyContext,
  first: readonly NotifiedGroup[],
): Promise<NotifiedGroup[]> {
  const known = new Set(
    first.flatMap(({ group, members }) => members.map((one) => workerKey(group.config.name, one))),
  );
  const only = new Set<string>();
  for (const group of context.groups) {
    const members = await readMembers(group);
    if (members instanceof WritError) continue;
    const keys = members.map(({ worker }) => workerKey(group.config.name, worker));
    for (const key of keys) if (!known.has(key)) only.add(key);
  }
  if (only.size === 0) return [...first];
  const second = await notifyWorkers(host, { ...context, only });
  return second.map((later, index): NotifiedGroup => {
    const before = first[index];
    if (before === undefined || later.unlisted !== undefined) return before ?? later;
    return { ...later, results: [...before.results, ...later.results] };
  });
}

/** As resetWorkers, without a judgement. */
export function notifyWorkers(host: Host, context: NotifyContext): Promise<NotifiedGroup[]> {
  const { target, signal, nextNotificationId, only, unreached } = context;
  const { proofs, newcomers: _, ...manner } = context.manner ?? {};
  const askedOnce = new Set<string>();
  return notifyGroups(context.groups, {
    ...{ target, nextNotificationId, signal, only, unreached, clock: host.clock },
    prove: async (group, results) => {
      if (proofs === 'last' || !asksEach(group.config.probe)) return;
      const { unheard } = await runProbes(host, { ...context, groups: [group] }, results, { askedOnce });
      if (unheard.size > 0) askedOnce.add(group.config.name);
    },
    ...manner,
  });
}

/** Notes one result of a step. */
export type StepNote = (result: WorkerResult) => void;

/**
 * Notes that the notification of these workers begins, and each result as it arrives: status shows it, and it outlives a crash.
 * The caller notes all results after the step. Hence an error of the disk is left to the caller.
 * @returns what notes one result; of a step with more workers than are notified at a time, several in one write
 */
export function noteStep(host: Pick<Host, 'ledger' | 'clock'>, keys: readonly string[]): StepNote {
  const collected: WorkerResult[] = [];
  let awaited = keys.length;
  ignoreDisk(() => host.ledger.write(withNotificationBegun(host.ledger.read(), keys, host.clock.nowMs())));
  return (result) => {
    awaited -= 1;
    collected.push(result);
    if (awaited >= maxParallelNotices && collected.length < maxParallelNotices) return;
    const results = collected.splice(0);
    ignoreDisk(() => noteWorkers(host, results));
  };
}

function ignoreDisk(write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
}

/** A refusal stands over a death, and both over a probe: who said it is nearest to the cause. */
function requireNobodySaysNo(groups: readonly NotifiedGroup[]): void {
  const results = groups.flatMap((one) => one.results);
  const noes = groups.flatMap((one) => one.noes);
  for (const code of noCodes) {
    const said = noes.filter((one) => one.code === code).map((one) => one.result);
    if (said.length > 0) throw refusal(code, said, results);
  }
  const failure = groups.find((one) => one.failure !== undefined)?.failure;
  if (failure === undefined) return;
  throw new WritError(failure.code, failure.message, {
    facts: { ...failure.facts, results },
    cause: failure,
  });
}

/**
 * @returns the results: a probe that saw the generation confirms the workers of its group that were notified; one that
 *   reached nobody says that they are not there. Who vouches for itself beside a probe that was not heard has that noted.
 */
export function provenBy(
  groups: readonly WorkerGroup[],
  { seen, unheard }: Probed,
  results: readonly WorkerResult[],
): Promise<WorkerResult[]> {
  return mapBounded(results, maxParallelNotices, async (one): Promise<WorkerResult> => {
    if (!hasAnswered(one)) return one;
    const keys = [one.group, workerKey(one.group, one.worker)];
    const [provenAtMs] = keys.flatMap((key) => seen.get(key) ?? []);
    if (provenAtMs !== undefined) return { ...one, state: 'confirmed', provenAtMs };
    const about = keys.find((key) => unheard.has(key)) ?? '';
    const verdict = unheard.get(about);
    if (verdict === undefined) return one;
    const { kind, reason } = verdict;
    if (one.state === 'confirmed' || kind !== 'unreachable')
      return { ...one, silence: `${about}: ${reason}` };
    const group = groups.find(({ config }) => config.name === one.group);
    const lives = group && (await seenAlive(group, one.worker, group.config.probe));
    return { ...one, ...lives, state: 'unreachable', text: `${one.text}; its probe: ${reason}` };
  });
}
