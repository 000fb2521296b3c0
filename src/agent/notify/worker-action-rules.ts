// What is to be done next about each worker, and why: decided from the ledger alone, before anything is done. Pure;
// reconcile does it.
import type { NotifyVerb } from '../../workers/contract/notify-worker.js';
import type { WorkerGroup } from '../state/host.js';
import type { Ledger, WorkerLedger } from '../state/ledger.js';
import { isDoubted } from './repeated-probe-rules.js';
import { groupOf, isPending, isTurn, refusesInVain, type VerbOf, workerOf } from './worker-ledger.js';

export interface WorkerAction {
  /** `remind`: as `notify`, of what it took before; its answer moves no policy. */
  readonly kind: 'probe' | 'notify' | 'remind' | 'restart' | 'nothing';
  readonly reason: string;
}

export interface ActionOptions {
  readonly nowMs: number;
  /** `all`: also those whose next try is later, since a person asked. */
  readonly who: 'all' | 'whose-turn-it-is';
  /** `asked`: of whom a probe did not say yes just now is notified. */
  readonly probes: 'not-asked' | 'asked';
  /** How each takes the generation over that it is to use. */
  readonly verbOf: VerbOf;
  /** Epoch milliseconds before which the successor of an ended process is not notified, by its key; left out: at once. */
  readonly successorAtMs?: (group: WorkerGroup, key: string) => number;
}

/**
 * @param groups whose workers are looked at
 * @returns by the keys of the workers, in their order
 */
export function nextWorkerActions(
  ledger: Pick<Ledger, 'workers' | 'previous'>,
  groups: readonly WorkerGroup[],
  options: ActionOptions,
): ReadonlyMap<string, WorkerAction> {
  const actions = new Map<string, WorkerAction>();
  for (const group of groups) {
    const own = Object.entries(ledger.workers).filter(([key]) => groupOf(key) === group.config.name);
    const isAsked = group.config.probe !== undefined && isProbeFirst(own, options);
    for (const [key, worker] of own) {
      const isLater = isHeldSuccessor(worker, options, () => options.successorAtMs?.(group, key) ?? 0);
      const why = isLater ? undefined : whyToNotify(worker, ledger, options);
      if (why === undefined) actions.set(key, { kind: 'nothing', reason: whyNothing(worker) });
      else if (isAsked) actions.set(key, { kind: 'probe', reason: 'it may already use the generation' });
      else actions.set(key, notification(worker, options.verbOf(group, workerOf(key)), why));
    }
  }
  return actions;
}

/** Its processes end again and again, and a notification may be what ends them. A person who asks has all of them notified. */
function isHeldSuccessor(
  { appeared }: WorkerLedger,
  { who, nowMs }: ActionOptions,
  successorAtMs: () => number,
): boolean {
  return appeared === true && who !== 'all' && successorAtMs() > nowMs;
}

/** What it took before needs no restart, whatever else is due. */
function notification(worker: WorkerLedger, verb: NotifyVerb, reason: string): WorkerAction {
  if (isDoubted(worker)) return { kind: 'remind', reason: 'its probe failed' };
  return { kind: verb === 'restart' ? 'restart' : 'notify', reason };
}

function whyToNotify(
  worker: WorkerLedger,
  ledger: Pick<Ledger, 'previous'>,
  { nowMs, who }: ActionOptions,
): string | undefined {
  if (isPending(worker) && (who === 'all' || isTurn(worker, nowMs)))
    return 'it has not accepted the generation';
  if (who === 'all' && refusesInVain(worker, ledger)) return 'it refuses, and may have been repaired';
  return undefined;
}

function whyNothing(worker: WorkerLedger): string {
  if (worker.goneAtMs !== undefined) return 'it is gone';
  if (isPending(worker)) return 'its next try is later';
  return worker.state === 'refused' ? 'it refuses' : 'it has answered';
}

/**
 * After a restart of the agent, or of a worker, a group may show the generation already. A probe asks the group and
 * not one worker: only where nobody in it has confirmed the generation can its answer not come from somebody else.
 */
function isProbeFirst(own: readonly [string, WorkerLedger][], options: ActionOptions): boolean {
  const there = own.map(([, one]) => one).filter((one) => one.goneAtMs === undefined);
  return (
    options.probes === 'not-asked' &&
    there.length > 0 &&
    there.every((one) => isPending(one) && isUnknown(one)) &&
    (options.who === 'all' || there.every((one) => isTurn(one, options.nowMs)))
  );
}

/** Whom a move did not come to notify is notified in full: a refusal before may have left it half way. */
function isUnknown({ appeared, state }: WorkerLedger): boolean {
  return appeared === true || state === 'unreachable';
}
