// The workers in a status report: what the ledger knows of each, and what the rule of the workers says of its group. Reads only.
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
  /** @returns paths as changedPaths; undefined where the generation cannot be compared any more */
  readonly changedSince: (generation: number | undefined) => readonly string[] | undefined;
}

export interface WorkerView {
  /** When its repeated probe was last right; left out: it was not asked again. */
  readonly provenAtMs?: number | undefined;
  /** What is active, and how it differs from another generation; left out where nothing can be proved. */
  readonly active?: ActiveBasis | undefined;
  /** Its group; left out where that is not configured any more. */
  readonly group?: Pick<WorkerGroupConfig, 'reset' | 'probe' | 'uses' | 'when' | 'restartWhen'> | undefined;
}

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
    // A proof from before it was doubted, or was another process, is none.
    provenAtMs: isProof(entry, active, group) ? Math.max(one.atMs, provenAtMs) : undefined,
    observed: isObserved(entry, group) ? undefined : false,
    nextNotificationAtMs: nextNotificationAtMs(entry),
    // What it last said is in the history; now it is awaited.
    ...(one.goneAtMs === undefined ? {} : { state: 'pending', atMs: one.goneAtMs }),
  });
}

/**
 * A proof counts for the active generation only, or for one that is the same to the group. Of a generation that is gone, a lower
 * number is one that later moves did not change for the group; a higher number was never active in this state.
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
 * Whether a proof would be noticed to be over: by its process, which would be another one, or by its probe. What a loader made has no
 * process.
 */
function isObserved({ state, goneAtMs, process }: WorkerLedger, group: WorkerView['group']): boolean {
  if (state !== 'confirmed' || goneAtMs !== undefined || group?.reset === undefined) return true;
  const hasProcess = process !== undefined && !process.endsWith(':');
  return hasProcess || group.probe?.everyMs !== undefined;
}

/** A ledger that is damaged or gone knows of no worker; that nobody is there is not known by that. */
export function areKnown({ ledger }: Pick<Host, 'ledger'>): boolean {
  return !isWritError(ledger.condition());
}

/** Before the first policy nobody has anything to prove. */
export function groupStatus(
  host: Pick<Host, 'config' | 'ledger'> & { readonly clock: Pick<Host['clock'], 'nowMs'> },
  active: object | undefined,
): GroupStatus[] {
  const facts = workerGroupFacts(host.ledger.read(), host.config, host.clock.nowMs());
  const found = active === undefined || !areKnown(host) ? [] : judgeWorkers(facts);
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
