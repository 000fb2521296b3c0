// The step `reset`: notifies the affected groups and judges the answers. A refusal is thrown, so that the caller restores the
// previous generation. Records each answer as it arrives, if the caller requests it.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { isWritError, WritError } from '../../core/errors.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { readProcessLiveness } from './dead-workers.js';
import type { NotifyContext } from './notify-context.js';
import { type NotifiedGroup, notifyGroups } from './notify-group.js';
import { isWorkerProbe, type ProbeResults, runProbes } from './probe-workers.js';
import { mapBounded, maxParallelNotices, readMembers } from './worker-groups.js';
import { hasAnswered, noteWorkers, withNotificationBegun, workerKey } from './worker-ledger.js';
import { createRefusalError, refusalCodes } from './worker-refusal.js';

export interface ResetReport {
  readonly results: readonly WorkerResult[];
  /** By group, if its members could not be listed: the reason. */
  readonly unread: ReadonlyMap<string, string>;
}

/**
 * Notifies every worker of the groups by its verb, and judges the answers.
 * @throws WritError WORKER_REFUSED, WORKER_DIED, SILENT_REFUSAL with the name of each such worker; PROBE_FAILED and
 *   PROBE_BROKEN of a rolling step. `facts.results` has the results of all notified workers
 */
export async function resetWorkers(host: Host, context: NotifyContext): Promise<ResetReport> {
  let groups = await notifyWorkers(host, context);
  throwIfRefused(groups);
  if (context.behavior?.notifyNewcomers === true && !context.signal.aborted) {
    groups = await notifyNewcomers(host, context, groups);
    throwIfRefused(groups);
  }
  const results = groups.flatMap((one) => one.results);
  return { results, unread: unreadGroups(groups) };
}

/** @returns by group, if its members could not be listed: the reason */
export function unreadGroups(groups: readonly NotifiedGroup[]): ReadonlyMap<string, string> {
  return new Map(
    groups.flatMap(({ group, unlisted }) =>
      unlisted === undefined ? [] : [[group.config.name, unlisted.message] as const],
    ),
  );
}

/**
 * Notifies members that joined since the first notification. Such a worker may have read the previous generation before the
 * swap, and no notification has reached it.
 */
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

/**
 * Notifies every worker of the groups by its verb. @returns the results of each group; refusals are results, and are not thrown
 */
export function notifyWorkers(host: Host, context: NotifyContext): Promise<NotifiedGroup[]> {
  const { target, signal, nextNotificationId, only, unreached } = context;
  const { skipStepProbes, notifyNewcomers: _, ...behavior } = context.behavior ?? {};
  const probedOnce = new Set<string>();
  return notifyGroups(context.groups, {
    ...{ target, nextNotificationId, signal, only, unreached, clock: host.clock },
    prove: async (group, results) => {
      if (skipStepProbes === true || !isWorkerProbe(group.config.probe)) return;
      const { withoutVerdict } = await runProbes(host, { ...context, groups: [group] }, results, {
        probedOnce,
      });
      if (withoutVerdict.size > 0) probedOnce.add(group.config.name);
    },
    ...behavior,
  });
}

/** Records one result of a step. */
export type StepNote = (result: WorkerResult) => void;

/**
 * Records that the notification of these workers begins, so that the status shows it and it survives a crash. Ignores disk
 * errors, because the caller records all results again after the step and throws them then.
 * @returns a function that records one result. With more workers than are notified in parallel, it batches the writes.
 */
export function noteStep(host: Pick<Host, 'ledger' | 'clock'>, keys: readonly string[]): StepNote {
  const collected: WorkerResult[] = [];
  let awaited = keys.length;
  ignoreDiskErrors(() =>
    host.ledger.write(withNotificationBegun(host.ledger.read(), keys, host.clock.nowMs())),
  );
  return (result) => {
    awaited -= 1;
    collected.push(result);
    if (awaited >= maxParallelNotices && collected.length < maxParallelNotices) return;
    const results = collected.splice(0);
    ignoreDiskErrors(() => noteWorkers(host, results));
  };
}

function ignoreDiskErrors(write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
}

/** Throws a refusal before a death, and both before a failed probe: the first is nearest to the cause. */
function throwIfRefused(groups: readonly NotifiedGroup[]): void {
  const results = groups.flatMap((one) => one.results);
  const refusals = groups.flatMap((one) => one.refusals);
  for (const code of refusalCodes) {
    const refused = refusals.filter((one) => one.code === code).map((one) => one.result);
    if (refused.length > 0) throw createRefusalError(code, refused, results);
  }
  const failure = groups.find((one) => one.failure !== undefined)?.failure;
  if (failure === undefined) return;
  throw new WritError(failure.code, failure.message, {
    facts: { ...failure.facts, results },
    cause: failure,
  });
}

/**
 * Applies the verdict of a worker's own probe, or else of its group's probe, to each result of a worker that accepted.
 * @returns the results. A probe that saw the generation confirms the worker. A probe that reached no process makes a worker
 *   `unreachable` that did not confirm by itself. Any other missing verdict is recorded in `silence`
 */
export function applyProbeResults(
  groups: readonly WorkerGroup[],
  { seen, withoutVerdict }: ProbeResults,
  results: readonly WorkerResult[],
): Promise<WorkerResult[]> {
  return mapBounded(results, maxParallelNotices, async (one): Promise<WorkerResult> => {
    if (!hasAnswered(one)) return one;
    const keys = [one.group, workerKey(one.group, one.worker)];
    const [provenAtMs] = keys.flatMap((key) => seen.get(key) ?? []);
    if (provenAtMs !== undefined) return { ...one, state: 'confirmed', provenAtMs };
    const about = keys.find((key) => withoutVerdict.has(key)) ?? '';
    const verdict = withoutVerdict.get(about);
    if (verdict === undefined) return one;
    const { kind, reason } = verdict;
    if (one.state === 'confirmed' || kind !== 'unreachable')
      return { ...one, silence: `${about}: ${reason}` };
    const group = groups.find(({ config }) => config.name === one.group);
    const liveness = group && (await readProcessLiveness(group, one.worker, group.config.probe));
    return { ...one, ...liveness, state: 'unreachable', text: `${one.text}; its probe: ${reason}` };
  });
}
