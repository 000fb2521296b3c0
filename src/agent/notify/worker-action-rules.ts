// Decides the next action for each worker, with its reason, from the ledger alone. Pure; reconcile carries the actions out.
import type { NotifyVerb } from '../../workers/contract/notify-worker.js';
import type { WorkerGroup } from '../state/host.js';
import type { Ledger, WorkerLedger } from '../state/ledger.js';
import { isSuspect } from './repeated-probe-rules.js';
import {
  groupOf,
  isBackoffOver,
  isPending,
  isRefusalWithoutRestore,
  type VerbOf,
  workerOf,
} from './worker-ledger.js';

export interface WorkerAction {
  /** `remind`: as `notify`, for a suspect worker that accepted the generation before. Its answer causes no rollback. */
  readonly kind: 'probe' | 'notify' | 'remind' | 'restart' | 'nothing';
  readonly reason: string;
}

export interface ActionOptions {
  readonly nowMs: number;
  /** Also notify pending workers before their backoff is over, because an operator requested it. */
  readonly ignoreBackoff: boolean;
  /** The probes ran just now, so pending workers are notified and not probed again. */
  readonly isAfterProbes: boolean;
  /** The verb for each worker. */
  readonly verbOf: VerbOf;
  /** By worker key: epoch milliseconds before which the successor of an ended process is not notified. Absent: at once. */
  readonly successorAtMs?: (group: WorkerGroup, key: string) => number;
}

/** @returns the action for each worker of the groups, by its key, in the order of the ledger */
export function nextWorkerActions(
  ledger: Pick<Ledger, 'workers' | 'previous'>,
  groups: readonly WorkerGroup[],
  options: ActionOptions,
): ReadonlyMap<string, WorkerAction> {
  const actions = new Map<string, WorkerAction>();
  for (const group of groups) {
    const own = Object.entries(ledger.workers).filter(([key]) => groupOf(key) === group.config.name);
    const isProbed = group.config.probe !== undefined && isProbeFirst(own, options);
    for (const [key, worker] of own) {
      const isDelayed = isDelayedSuccessor(worker, options, () => options.successorAtMs?.(group, key) ?? 0);
      const reason = isDelayed ? undefined : reasonToNotify(worker, ledger, options);
      if (reason === undefined) actions.set(key, { kind: 'nothing', reason: reasonForNothing(worker) });
      else if (isProbed) actions.set(key, { kind: 'probe', reason: 'it may already use the generation' });
      else actions.set(key, chooseNotification(worker, options.verbOf(group, workerOf(key)), reason));
    }
  }
  return actions;
}

/** True for a new process after repeated ends of its predecessors: notifications may cause them. A request ignores the delay. */
function isDelayedSuccessor(
  { appeared }: WorkerLedger,
  { ignoreBackoff, nowMs }: ActionOptions,
  successorAtMs: () => number,
): boolean {
  return appeared === true && !ignoreBackoff && successorAtMs() > nowMs;
}

/** A suspect worker accepted this generation before, so it needs no restart, even if one is pending. */
function chooseNotification(worker: WorkerLedger, verb: NotifyVerb, reason: string): WorkerAction {
  if (isSuspect(worker)) return { kind: 'remind', reason: 'its probe failed' };
  return { kind: verb === 'restart' ? 'restart' : 'notify', reason };
}

function reasonToNotify(
  worker: WorkerLedger,
  ledger: Pick<Ledger, 'previous'>,
  { nowMs, ignoreBackoff }: ActionOptions,
): string | undefined {
  if (isPending(worker) && (ignoreBackoff || isBackoffOver(worker, nowMs)))
    return 'it has not accepted the generation';
  if (ignoreBackoff && isRefusalWithoutRestore(worker, ledger))
    return 'it refuses, and may have been repaired';
  return undefined;
}

function reasonForNothing(worker: WorkerLedger): string {
  if (worker.goneAtMs !== undefined) return 'it is gone';
  if (isPending(worker)) return 'its next try is later';
  return worker.state === 'refused' ? 'it refuses' : 'it has answered';
}

/**
 * After a restart of the agent or of a worker, a group may already use the generation. A group probe can be answered by any
 * member, so it runs first only if no member has confirmed the generation.
 */
function isProbeFirst(own: readonly [string, WorkerLedger][], options: ActionOptions): boolean {
  const there = own.map(([, one]) => one).filter((one) => one.goneAtMs === undefined);
  return (
    !options.isAfterProbes &&
    there.length > 0 &&
    there.every((one) => isPending(one) && isUnknown(one)) &&
    (options.ignoreBackoff || there.every((one) => isBackoffOver(one, options.nowMs)))
  );
}

/** False for a worker that a move did not notify: an earlier refusal may have left it half loaded, so it is notified. */
function isUnknown({ appeared, state }: WorkerLedger): boolean {
  return appeared === true || state === 'unreachable';
}
