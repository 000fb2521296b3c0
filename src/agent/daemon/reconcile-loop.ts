// What the agent does for its workers apart from cycles: it looks who is there, tells who is due, each in its own time,
// and runs the loaders that a new boot still needs. Owns when; who is told, and what, is settle-due's.
import type { Problem } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';
import { newCycleId, tellIds } from '../job/progress.js';
import { recordEvent } from '../job/record.js';
import { openStagingArea } from '../job/staging-area.js';
import { loadAtBoot } from '../notify/boot-loaders.js';
import type { SetsOptions } from '../notify/membership.js';
import { type SettleResult, settleDue } from '../notify/reconcile.js';
import { dueDelayMs, tellableWorkers } from '../notify/worker-ledger.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';

export interface SettlerOptions {
  /** A worker said no to what is active already, long after its cycle. */
  readonly onRefused?: (host: Host, refusal: WritError) => Promise<void>;
}

export interface Turn {
  /** The ledger says something else about workers than before. */
  readonly news: 'yes' | 'no';
  /** Why a loader is still due. */
  readonly loader: Problem | undefined;
}

export interface Settler {
  /** One turn; its caller sees to it that nothing else moves the policy meanwhile. Never rejects. */
  turn(
    host: Host,
    options: { readonly signal: AbortSignal; readonly loader: Problem | undefined },
  ): Promise<Turn>;
}

/** A turn is as often as a worker may wait that has just appeared. */
const turnEveryMs = 5000;
/** Whether those who answered live: some drivers connect to a worker to see it. */
const doubtEveryMs = 60_000;
/** A set that takes long to read, as one by a command, is read at most this part of the time. */
const readShare = 20;

interface Later {
  tries: number;
  /** By the monotonic clock. */
  notBeforeMs: number;
}

/** @returns a settler that remembers when each set was read, and for how long */
export function createSettler(options: SettlerOptions = {}): Settler {
  const sets = new Map<string, Later>();
  const loading: Later = { tries: 0, notBeforeMs: 0 };
  let doubtAtMs = 0;
  return {
    turn: async (host, { signal, loader }) => {
      const before = tellingOf(host.ledger.read());
      const isLoading = loader !== undefined || host.ledger.read().loadDue === true;
      const left = isLoading ? await loadAgain(host, { loader, loading, signal }) : undefined;
      const groups = host.groups.filter(({ config, driver }) => {
        const { notBeforeMs = 0 } = sets.get(config.name) ?? {};
        return driver !== undefined && notBeforeMs <= host.clock.monotonicMs();
      });
      const nowMs = host.clock.monotonicMs();
      const doubt = nowMs >= doubtAtMs ? 'the-answered' : 'the-gone';
      if (doubt === 'the-answered') doubtAtMs = nowMs + doubtEveryMs;
      await settleApart(host, { ...options, groups, sets, signal, doubt });
      const isNews = tellingOf(host.ledger.read()) !== before || left !== loader;
      return { news: isNews ? 'yes' : 'no', loader: left };
    },
  };
}

function tellingOf({ workers, unreadSets }: Ledger): string {
  return JSON.stringify([workers, unreadSets]);
}

async function loadAgain(
  host: Host,
  { loader, loading, signal }: { loader: Problem | undefined; loading: Later; signal: AbortSignal },
): Promise<Problem | undefined> {
  if (loading.notBeforeMs > host.clock.monotonicMs()) return loader;
  const problem = await loadAtBoot(host, { cycle: newCycleId(), signal });
  loading.tries = problem === undefined ? 0 : loading.tries + 1;
  loading.notBeforeMs = host.clock.monotonicMs() + (problem === undefined ? 0 : dueDelayMs(loading.tries));
  return problem;
}

interface Apart extends SettlerOptions {
  readonly groups: readonly WorkerGroup[];
  readonly sets: Map<string, Later>;
  readonly signal: AbortSignal;
  readonly doubt: SetsOptions['doubt'];
}

async function settleApart(host: Host, { groups, sets, signal, doubt, onRefused }: Apart): Promise<void> {
  const isTurn = tellableWorkers(host.ledger.read(), host.clock.nowMs()).size > 0;
  if (groups.length === 0 && !isTurn) return;
  const cycle = newCycleId();
  const area = openStagingArea(host.paths, host.durable, cycle);
  let readMs: SettleResult['readMs'] = new Map();
  try {
    const settled = await settleDue(host, {
      ...{ groups, signal, doubt, nextTell: tellIds(cycle), staging: () => area.path() },
      who: 'whose-turn-it-is',
      ...(onRefused === undefined ? {} : { onRefused: (refusal) => onRefused(host, refusal) }),
    });
    readMs = settled.readMs;
    report(host, cycle, settled);
  } catch (error) {
    host.log.warn({ err: error }, 'due workers could not be told');
  } finally {
    area.remove(host.log);
    noteRead(host, { groups, sets, readMs });
  }
}

function noteRead(
  host: Host,
  { groups, sets, readMs }: Pick<Apart, 'groups' | 'sets'> & Pick<SettleResult, 'readMs'>,
): void {
  const { unreadSets = {} } = host.ledger.read();
  for (const { config } of groups) {
    const isUnread = unreadSets[config.name] !== undefined;
    const tries = isUnread ? (sets.get(config.name)?.tries ?? 0) + 1 : 0;
    const tookMs = readMs.get(config.name) ?? 0;
    const waitMs = isUnread ? dueDelayMs(tries) : Math.min(tookMs * readShare, dueDelayMs(100));
    // What is read within a turn's time is read at each turn.
    const isQuick = !isUnread && waitMs <= turnEveryMs;
    sets.set(config.name, { tries, notBeforeMs: isQuick ? 0 : host.clock.monotonicMs() + waitMs });
  }
}

/** Who could not be told again is no news: the ledger has since when, and how often. */
function report(host: Host, cycle: string, { results, problems }: SettleResult): void {
  if (results.length === 0) return;
  host.log.info({ cycle, results, problems }, 'workers that were due');
  const workers = results.filter((one) => one.state !== 'unreachable');
  if (workers.length === 0) return;
  const reason = 'workers that were due';
  recordEvent(host, { cycle, trigger: 'due', reason, workers, problems });
}

export interface SettleLoopOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly stop: AbortSignal;
  /** What else is done between polls, before each wait and after each turn. */
  readonly before: () => Promise<void>;
  readonly after: () => Promise<void>;
  readonly turn: () => Promise<void>;
}

/** Turn after turn until it is stopped. */
export async function runSettleLoop(options: SettleLoopOptions): Promise<void> {
  const { clock, stop, before, after, turn } = options;
  while (!stop.aborted) {
    await before();
    await clock.sleep(turnEveryMs, stop);
    if (stop.aborted) return;
    await turn();
    await after();
  }
}
