// What the agent does for its workers apart from cycles: it looks who is there, notifies who is pending, each in its own
// time, and runs the loaders that a new boot still needs. Owns when; who is notified, and of what, is reconcile's.
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

export interface Turn {
  /** The ledger says something else about workers than before. */
  readonly news: 'yes' | 'no';
  /** Why a loader is still pending. */
  readonly loader: Problem | undefined;
}

export interface Settler {
  /** One turn; its caller sees to it that nothing else moves the policy meanwhile. Never rejects. */
  turn(
    host: Host,
    options: { readonly signal: AbortSignal; readonly loader: Problem | undefined },
  ): Promise<Turn>;
}

/** A worker refused what is active already, long after its cycle. */
type OnRefused = (host: Host, refusal: WritError) => Promise<void>;

/** How often an agent looks after its workers by itself. */
export interface SettleIntervals {
  /** A turn is as often as a worker may wait that has just appeared. */
  readonly turnEveryMs: number;
  /** Whether those who answered live: some drivers connect to a worker to see it. */
  readonly doubtEveryMs: number;
  /** However long it takes to read a set, it is read as often as that. */
  readonly maxReadGapMs: number;
}

/** @returns how often at least the process of each worker is looked at, in milliseconds */
export function identityGapMs({ isBaking }: { readonly isBaking: boolean }): number {
  return isBaking ? 2000 : 60_000;
}

export const usualIntervals: SettleIntervals = {
  turnEveryMs: 5000,
  doubtEveryMs: identityGapMs({ isBaking: false }),
  maxReadGapMs: identityGapMs({ isBaking: false }),
};
/** A set that takes long to read, as one by a command, is read at most this part of the time. */
const readShare = 20;

interface Later {
  readonly tries: number;
  /** By the monotonic clock. */
  readonly notBeforeMs: number;
}

const atOnce: Later = { tries: 0, notBeforeMs: 0 };

export interface SettlerOptions {
  readonly onRefused?: OnRefused;
  /** Left out: the usual ones. */
  readonly intervals?: SettleIntervals | undefined;
  /** Whether a release is in its bake time, when workers are looked at more often; left out: never. */
  readonly isBaking?: ((host: Host) => boolean) | undefined;
}

/** @returns a settler that remembers when each set was read, and for how long */
export function createSettler({
  onRefused,
  intervals = usualIntervals,
  isBaking = () => false,
}: SettlerOptions = {}): Settler {
  const sets = new Map<string, Later>();
  let loading = atOnce;
  let doubtedAtMs = Number.NEGATIVE_INFINITY;
  const loadPending = async (
    host: Host,
    loader: Problem | undefined,
    signal: AbortSignal,
  ): Promise<Problem | undefined> => {
    if (loader === undefined && host.ledger.read().loadPending !== true) return undefined;
    if (loading.notBeforeMs > host.clock.monotonicMs()) return loader;
    const left = await loadAtBoot(host, { cycle: newCycleId(), signal });
    loading = left === undefined ? atOnce : later(loading.tries + 1, host.clock);
    return left;
  };
  const settle = async (host: Host, signal: AbortSignal): Promise<void> => {
    const nowMs = host.clock.monotonicMs();
    const gapMs = isBaking(host) ? identityGapMs({ isBaking: true }) : intervals.doubtEveryMs;
    const livenessCheck = nowMs >= doubtedAtMs + gapMs ? 'all' : 'departed';
    if (livenessCheck === 'all') doubtedAtMs = nowMs;
    const groups = host.groups.filter(
      ({ config, driver }) => driver !== undefined && (sets.get(config.name) ?? atOnce).notBeforeMs <= nowMs,
    );
    if (groups.length === 0 && notifiableWorkers(host.ledger.read(), host.clock.nowMs()).size === 0) return;
    const readMs = await settleApart(host, { groups, signal, livenessCheck, onRefused });
    for (const { config } of groups) noteRead(host, config.name, sets, { readMs, intervals });
  };
  return {
    turn: async (host, { signal, loader }) => {
      const before = workersText(host.ledger.read());
      const left = await loadPending(host, loader, signal);
      await settle(host, signal);
      const isNews = workersText(host.ledger.read()) !== before || left !== loader;
      return { news: isNews ? 'yes' : 'no', loader: left };
    },
  };
}

function later(tries: number, clock: Clock, afterMs = notifyDelayMs(tries)): Later {
  return { tries, notBeforeMs: clock.monotonicMs() + afterMs };
}

function workersText({ workers, unreadSets }: Ledger): string {
  return JSON.stringify([workers, unreadSets]);
}

/** @returns how long it took to read each set */
async function settleApart(
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
    const settled = await reconcileWorkers(host, {
      ...{
        ...options,
        nextNotificationId: notificationIds(cycle),
        staging: () => area.path(),
        ignoreBackoff: false,
      },
      ...(onRefused === undefined ? {} : { onRefused: (refusal) => onRefused(host, refusal) }),
    });
    endBlockOfWorkers(host, settled.problems);
    report(host, cycle, settled);
    return settled.readMs;
  } catch (error) {
    host.log.warn({ err: error }, 'pending workers could not be notified');
    return new Map();
  } finally {
    area.remove(host.log);
  }
}

function noteRead(
  { ledger, clock }: Host,
  name: string,
  sets: Map<string, Later>,
  { readMs, intervals }: Pick<ReconcileResult, 'readMs'> & { readonly intervals: SettleIntervals },
): void {
  if (ledger.read().unreadSets?.[name] !== undefined) {
    sets.set(name, later((sets.get(name) ?? atOnce).tries + 1, clock));
    return;
  }
  const { turnEveryMs, maxReadGapMs } = intervals;
  const waitMs = Math.min((readMs.get(name) ?? 0) * readShare, maxReadGapMs);
  // What is read within a turn's time is read at each turn.
  sets.set(name, waitMs <= turnEveryMs ? atOnce : later(0, clock, waitMs));
}

/** Who could not be notified again is no news: the ledger has since when, and how often. */
function report(host: Host, cycle: string, { results, problems }: ReconcileResult): void {
  if (results.length === 0) return;
  const reason = 'workers that were pending';
  host.log.info({ cycle, results, problems }, reason);
  const workers = results.filter((one) => one.state !== 'unreachable');
  if (workers.length > 0) recordEvent(host, { cycle, trigger: 'pending', reason, workers, problems });
}

export interface SettleLoopOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly stop: AbortSignal;
  /** What else is done between polls, before each wait and after each turn. */
  readonly before: () => Promise<void>;
  readonly after: () => Promise<void>;
  readonly turn: () => Promise<void>;
  /** Left out: the usual one. */
  readonly turnEveryMs?: number | undefined;
  /** Whether a release is in its bake time; left out: never. */
  readonly isBaking?: (() => boolean) | undefined;
}

/** Turn after turn until it is stopped. */
export async function runSettleLoop(options: SettleLoopOptions): Promise<void> {
  const { clock, stop, before, after, turn, isBaking = () => false } = options;
  const { turnEveryMs = usualIntervals.turnEveryMs } = options;
  while (!stop.aborted) {
    await before();
    const gapMs = isBaking() ? identityGapMs({ isBaking: true }) : turnEveryMs;
    await clock.sleep(Math.min(gapMs, turnEveryMs), stop);
    if (stop.aborted) return;
    await turn();
    await after();
  }
}
