// Reconciles workers between cycles: reads the members of each group, notifies pending workers with a backoff for each, and runs the
// loaders that are pending after a boot. Schedules only: notify/reconcile.ts decides which workers are notified.
import type { Problem } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';
import { newCycleId, notificationIds } from '../job/progress.js';
import { recordEvent } from '../job/record.js';
import { openStagingArea } from '../job/staging-area.js';
import { loadAtBoot } from '../notify/boot-loaders.js';
import { type ReconcileResult, reconcileWorkers } from '../notify/reconcile.js';
import { notifiableWorkers, notifyDelayMs } from '../notify/worker-ledger.js';
import { endBlockOfWorkers } from '../select/holds-and-blocks.js';
import type { Host } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';

export interface ReconcileRound {
  /** True if the ledger of the workers or the pending loader changed. */
  readonly hasChanged: boolean;
  /** The problem of a loader that is still pending; undefined for none. */
  readonly loader: Problem | undefined;
}

export interface Reconciler {
  /** Runs one round. The caller holds the job lock, so that no other job moves the policy. Never rejects. */
  runRound(
    host: Host,
    options: { readonly signal: AbortSignal; readonly loader: Problem | undefined },
  ): Promise<ReconcileRound>;
}

/** Called when a worker refuses the active release after the end of its cycle. */
type OnRefused = (host: Host, refusal: WritError) => Promise<void>;

/** The intervals of the reconcile loop, in milliseconds. */
export interface ReconcileIntervals {
  /** Between two rounds: the longest time until a new worker is notified. */
  readonly roundEveryMs: number;
  /** Between two liveness checks of confirmed workers, for which some drivers connect to them. */
  readonly livenessEveryMs: number;
  /** The longest time between two reads of a worker group, however long a read takes. */
  readonly maxReadGapMs: number;
}

/** @returns the longest time between two checks of the process of each worker, in milliseconds */
export function identityGapMs({ isBaking }: { readonly isBaking: boolean }): number {
  return isBaking ? 2000 : 60_000;
}

export const usualIntervals: ReconcileIntervals = {
  roundEveryMs: 5000,
  livenessEveryMs: identityGapMs({ isBaking: false }),
  maxReadGapMs: identityGapMs({ isBaking: false }),
};
/** The read of a slow group, as one by a command, takes at most one part in `readShare` of the time. */
const readShare = 20;

interface RetryTime {
  readonly tries: number;
  /** In milliseconds of the monotonic clock. */
  readonly notBeforeMs: number;
}

const immediately: RetryTime = { tries: 0, notBeforeMs: 0 };

export interface ReconcilerOptions {
  readonly onRefused?: OnRefused;
  /** Undefined: `usualIntervals`. */
  readonly intervals?: ReconcileIntervals | undefined;
  /** Returns true if a release is in its bake time, when workers are checked more often; undefined: never. */
  readonly isBaking?: ((host: Host) => boolean) | undefined;
}

/** @returns a reconciler that remembers the next read of each group, and the last liveness check */
export function createReconciler({
  onRefused,
  intervals = usualIntervals,
  isBaking = () => false,
}: ReconcilerOptions = {}): Reconciler {
  const sets = new Map<string, RetryTime>();
  let loading = immediately;
  let doubtedAtMs = Number.NEGATIVE_INFINITY;
  const loadPending = async (
    host: Host,
    loader: Problem | undefined,
    signal: AbortSignal,
  ): Promise<Problem | undefined> => {
    if (loader === undefined && host.ledger.read().loadPending !== true) return undefined;
    if (loading.notBeforeMs > host.clock.monotonicMs()) return loader;
    const left = await loadAtBoot(host, { cycle: newCycleId(), signal });
    loading = left === undefined ? immediately : retryAfter(loading.tries + 1, host.clock);
    return left;
  };
  const reconcile = async (host: Host, signal: AbortSignal): Promise<void> => {
    const nowMs = host.clock.monotonicMs();
    const gapMs = isBaking(host) ? identityGapMs({ isBaking: true }) : intervals.livenessEveryMs;
    const livenessCheck = nowMs >= doubtedAtMs + gapMs ? 'all' : 'departed';
    if (livenessCheck === 'all') doubtedAtMs = nowMs;
    const groups = host.groups.filter(
      ({ config, driver }) =>
        driver !== undefined && (sets.get(config.name) ?? immediately).notBeforeMs <= nowMs,
    );
    if (groups.length === 0 && notifiableWorkers(host.ledger.read(), host.clock.nowMs()).size === 0) return;
    const readMs = await reconcileGroups(host, { groups, signal, livenessCheck, onRefused });
    for (const { config } of groups) scheduleNextRead(host, config.name, sets, { readMs, intervals });
  };
  return {
    runRound: async (host, { signal, loader }) => {
      const before = workersFingerprint(host.ledger.read());
      const left = await loadPending(host, loader, signal);
      await reconcile(host, signal);
      const hasChanged = workersFingerprint(host.ledger.read()) !== before || left !== loader;
      return { hasChanged, loader: left };
    },
  };
}

function retryAfter(tries: number, clock: Clock, afterMs = notifyDelayMs(tries)): RetryTime {
  return { tries, notBeforeMs: clock.monotonicMs() + afterMs };
}

function workersFingerprint({ workers, unreadSets }: Ledger): string {
  return JSON.stringify([workers, unreadSets]);
}

/** @returns the duration of the read of each group, in milliseconds */
async function reconcileGroups(
  host: Host,
  {
    onRefused,
    ...options
  }: Pick<Parameters<typeof reconcileWorkers>[1], 'groups' | 'signal' | 'livenessCheck'> & {
    readonly onRefused: OnRefused | undefined;
  },
): Promise<ReconcileResult['readMs']> {
  const cycle = newCycleId();
  const area = openStagingArea(host.paths, host.durable, cycle);
  try {
    const reconciled = await reconcileWorkers(host, {
      ...{
        ...options,
        nextNotificationId: notificationIds(cycle),
        staging: () => area.path(),
        ignoreBackoff: false,
      },
      ...(onRefused === undefined ? {} : { onRefused: (refusal) => onRefused(host, refusal) }),
    });
    endBlockOfWorkers(host, reconciled.problems);
    recordResults(host, cycle, reconciled);
    return reconciled.readMs;
  } catch (error) {
    host.log.warn({ err: error }, 'pending workers could not be notified');
    return new Map();
  } finally {
    area.remove(host.log);
  }
}

function scheduleNextRead(
  { ledger, clock }: Host,
  name: string,
  sets: Map<string, RetryTime>,
  { readMs, intervals }: Pick<ReconcileResult, 'readMs'> & { readonly intervals: ReconcileIntervals },
): void {
  if (ledger.read().unreadSets?.[name] !== undefined) {
    sets.set(name, retryAfter((sets.get(name) ?? immediately).tries + 1, clock));
    return;
  }
  const { roundEveryMs: turnEveryMs, maxReadGapMs } = intervals;
  const waitMs = Math.min((readMs.get(name) ?? 0) * readShare, maxReadGapMs);
  // A group with a wait shorter than a round is read in every round.
  sets.set(name, waitMs <= turnEveryMs ? immediately : retryAfter(0, clock, waitMs));
}

/** Logs and records the results. Leaves workers that were unreachable again out of the history, because the ledger counts them. */
function recordResults(host: Host, cycle: string, { results, problems }: ReconcileResult): void {
  if (results.length === 0) return;
  const reason = 'workers that were pending';
  host.log.info({ cycle, results, problems }, reason);
  const workers = results.filter((one) => one.state !== 'unreachable');
  if (workers.length > 0) recordEvent(host, { cycle, trigger: 'pending', reason, workers, problems });
}

export interface ReconcileLoopOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly stop: AbortSignal;
  /** Other work between polls, before each wait. */
  readonly before: () => Promise<void>;
  /** Other work between polls, after each round. */
  readonly after: () => Promise<void>;
  readonly runRound: () => Promise<void>;
  /** Undefined: that of `usualIntervals`. */
  readonly roundEveryMs?: number | undefined;
  /** Returns true if a release is in its bake time; undefined: never. */
  readonly isBaking?: (() => boolean) | undefined;
}

/** Runs rounds until the stop request. */
export async function runReconcileLoop(options: ReconcileLoopOptions): Promise<void> {
  const { clock, stop, before, after, runRound, isBaking = () => false } = options;
  const { roundEveryMs: turnEveryMs = usualIntervals.roundEveryMs } = options;
  while (!stop.aborted) {
    await before();
    const gapMs = isBaking() ? identityGapMs({ isBaking: true }) : turnEveryMs;
    await clock.sleep(Math.min(gapMs, turnEveryMs), stop);
    if (stop.aborted) return;
    await runRound();
    await after();
  }
}
