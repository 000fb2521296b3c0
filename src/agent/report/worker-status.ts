// The workers in a status report: the ledger entry of each worker, and the findings of the worker rules for its group. Reads only.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import { isWritError } from '../../core/errors.js';
import { withoutUndefined } from '../../core/given.js';
import { affectsGroup } from '../../core/release/affected-groups.js';
import type { GroupStatus, WorkerStatus } from '../../core/status/status.js';
import { judgeWorkers } from '../../core/status/worker-rules.js';
import { groupOf, nextNotificationAtMs, workerOf } from '../notify/worker-ledger.js';
import { workerGroupFacts } from '../state/confirmed-workers.js';
import type { Host } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';

const reached: ReadonlySet<WorkerStatus['state']> = new Set(['confirmed', 'notified', 'refused']);

export interface ActiveBasis {
  readonly generation: number;
  /** @returns the changed paths; undefined if the generation is deleted and cannot be compared */
  readonly changedSince: (generation: number | undefined) => readonly string[] | undefined;
}

export interface WorkerView {
  /** When its repeated probe last succeeded, epoch milliseconds; left out before the first. */
  readonly provenAtMs?: number | undefined;
  /** The active generation; left out if no confirmation can count. */
  readonly active?: ActiveBasis | undefined;
  /** Its group; left out if it is not configured any more. */
  readonly group?: Pick<WorkerGroupConfig, 'reset' | 'probe' | 'uses' | 'when' | 'restartWhen'> | undefined;
}

/** @param key `group/worker`. @returns the entry of the status report; the state is `pending` for a departed worker */
export function workerStatus(
  key: string,
  entry: WorkerLedger,
  { provenAtMs = 0, active, group }: WorkerView = {},
): WorkerStatus {
  const {
    process: _,
    appeared: _appeared,
    owed: _owed,
    lives: _lives,
    probed: _probed,
    secondProbe: _secondProbe,
    soonReplacedAtMs: _soonReplacedAtMs,
    soonReplacements: _soonReplacements,
    notifiedAtMs,
    ...one
  } = entry;
  const isReached = reached.has(one.state);
  return withoutUndefined<WorkerStatus>({
    group: groupOf(key),
    worker: workerOf(key),
    ...one,
    notified: isReached ? one.wanted : undefined,
    notifiedAtMs: isReached ? notifiedAtMs : undefined,
    // A confirmation from before the worker became suspect or got another process does not count.
    provenAtMs: isProof(entry, active, group) ? Math.max(one.atMs, provenAtMs) : undefined,
    observed: isObserved(entry, group) ? undefined : false,
    nextNotificationAtMs: nextNotificationAtMs(entry),
    // A departed worker is pending; its last answer is in the history.
    ...(one.goneAtMs === undefined ? {} : { state: 'pending', atMs: one.goneAtMs }),
  });
}

/**
 * Whether a confirmation counts: it must be of the active generation or of one that is equal for the group. For a deleted generation, a
 * lower number means that later moves did not change it for the group; a higher number was never active in this state.
 */
function isProof(
  { state, goneAtMs, confirmed }: WorkerLedger,
  active: ActiveBasis | undefined,
  group: WorkerView['group'],
): boolean {
  if (state !== 'confirmed' || goneAtMs !== undefined || active === undefined) return false;
  if (confirmed === undefined || confirmed === active.generation) return true;
  const changed = active.changedSince(confirmed);
  if (changed === undefined) return confirmed < active.generation;
  return group === undefined || !affectsGroup(group, changed);
}

/**
 * Whether the agent would notice the loss of a confirmation: by a new process or by the repeated probe. A group with only a loader has
 * no process to observe.
 */
function isObserved({ state, goneAtMs, process }: WorkerLedger, group: WorkerView['group']): boolean {
  if (state !== 'confirmed' || goneAtMs !== undefined || group?.reset === undefined) return true;
  const hasProcess = process !== undefined && !process.endsWith(':');
  return hasProcess || group.probe?.everyMs !== undefined;
}

/** Whether the ledger is intact. A damaged or lost ledger lists no workers, which does not mean that there are none. */
export function areWorkersKnown({ ledger }: Pick<Host, 'ledger'>): boolean {
  return !isWritError(ledger.condition());
}

/** @returns the counts and findings of each group; no findings before the first generation, because there is nothing to confirm */
export function groupStatus(
  host: Pick<Host, 'config' | 'ledger'> & { readonly clock: Pick<Host['clock'], 'nowMs'> },
  active: object | undefined,
): GroupStatus[] {
  const facts = workerGroupFacts(host.ledger.read(), host.config, host.clock.nowMs());
  const found = active === undefined || !areWorkersKnown(host) ? [] : judgeWorkers(facts);
  return facts.map(({ group, min, workers }) => {
    const there = workers.filter((one) => one.goneAtMs === undefined);
    const own = found.filter((one) => one.group === group);
    return {
      ...{ group, min, workers: there.length },
      confirmed: there.filter((one) => one.state === 'confirmed').length,
      findings: own.map(({ level, code, text }) => ({ level, code, text })),
    };
  });
}
