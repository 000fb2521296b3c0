// One round for the releases in their bake time, for a command that waits for them while no agent runs. It reconciles workers, runs
// the due probes and checks contact, each once as an agent does. Then the start of the host judges the bake times and restores the
// previous release after a failure.
import { isWritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { BakeWait } from '../../core/status/status.js';
import { askProbeOf } from '../bake/ask-probe.js';
import { createContactTurn } from '../contact/contact-turn.js';
import { leaveWhenRefused } from '../cycle/late-refusal.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { exclusiveAlone } from '../job/exclusive.js';
import { newCycleId, notificationIds } from '../job/progress.js';
import { createRecorder } from '../job/record.js';
import { openStagingArea } from '../job/staging-area.js';
import { reconcileWorkers } from '../notify/reconcile.js';
import { bakeStatus, startObservation } from '../report/bake-status.js';
import { isSeenByConnection } from '../runs/observe-runs.js';
import { bakingBundles, probeGapMs } from '../settled/probe-gap-rules.js';
import type { StartObservation } from '../startup/start-host.js';
import type { Host } from '../state/host.js';
import { type StandaloneOptions, withHost } from './standalone-commands.js';

export interface StandaloneBakeResult {
  /** The reason why a bake time does not proceed, by bundle name; undefined if another command held the lock. */
  readonly waits: ReadonlyMap<string, BakeWait> | undefined;
}

/** Runs one round. @throws WritError as pullStandalone, except LOCK_HELD: another command that holds the lock does the same work */
export type StandaloneBakeRound = (
  options: Omit<StandaloneOptions, 'onEvent'>,
) => Promise<StandaloneBakeResult>;

/** @returns a function that remembers the times of its probes and of its last observation between calls */
export function createStandaloneBakeRound(): StandaloneBakeRound {
  const askedAtMs = new Map<string, number>();
  let observedAtMs: number | undefined;
  let takersBefore: StartObservation['takersBefore'];
  const onTakers: StartObservation['onTakers'] = (takers) => {
    takersBefore = takers;
  };
  return async (options) => {
    const observe = async (host: Host): Promise<StartObservation> => {
      await reconcileOnce(host, options.signal);
      await askDueProbes(host, askedAtMs, options.signal);
      await contactRoundOf(host, options.signal)();
      const nowMs = host.clock.monotonicMs();
      const elapsedMs = nowMs - (observedAtMs ?? nowMs);
      observedAtMs = nowMs;
      return { unseenGroups: unseenGroups(host), elapsedMs, takersBefore, onTakers };
    };
    try {
      return await withHost(
        { ...options, hasLaterScrub: true, observe },
        'pull',
        async (host, { restored }) => {
          await awaitContactVerdict(host, options.signal);
          const observation = startObservation(findObservableBundles(host), host.clock.nowMs());
          return {
            answer: { waits: findBakeWaits(host) },
            observation,
            ...given({ last: restored?.result }),
          };
        },
      );
    } catch (error) {
      if (!isWritError(error) || error.code !== 'LOCK_HELD') throw error;
      observedAtMs = undefined;
      return { waits: undefined };
    }
  };
}

function unseenGroups({ groups }: Host): string[] {
  return groups.filter(({ driver }) => isSeenByConnection(driver)).map(({ config }) => config.name);
}

function findObservableBundles(host: Host): string[] {
  const { bundles, workers } = host.config;
  const unseen = workers.filter(({ name }) => unseenGroups(host).includes(name));
  return bundles
    .map(({ name }) => name)
    .filter((bundle) => !unseen.some(({ uses }) => uses.includes(bundle)));
}

function findBakeWaits(host: Host): ReadonlyMap<string, BakeWait> {
  const ledger = host.ledger.read();
  const nowMs = host.clock.nowMs();
  const observable = findObservableBundles(host);
  const waits = Object.entries(ledger.bakes ?? {}).flatMap(([bundle, bake]): [string, BakeWait][] => {
    const facts = { bundle, release: bake, nowMs, isObserved: observable.includes(bundle) };
    const { waitsFor } = bakeStatus(host, ledger, facts) ?? {};
    return waitsFor === undefined ? [] : [[bundle, waitsFor]];
  });
  return new Map(waits);
}

/** Notifies workers that were replaced, or that failed three probes, as an agent does. */
async function reconcileOnce(host: Host, signal: AbortSignal): Promise<void> {
  const cycle = newCycleId();
  const area = openStagingArea(host.paths, host.durable, cycle);
  try {
    await reconcileWorkers(host, {
      // Skip groups with members that are known only by their connections to an agent: they would seem empty.
      groups: host.groups.filter(({ driver }) => driver !== undefined && !isSeenByConnection(driver)),
      ...{ signal, ignoreBackoff: false, nextNotificationId: notificationIds(cycle) },
      staging: () => area.path(),
      onRefused: (refusal) =>
        leaveWhenRefused((end, reason) => recordByWrit(host, end, reason))(host, refusal),
    });
  } catch (error) {
    // Continue, because the bake times must be judged in any case.
    host.log.warn({ err: error }, 'pending workers could not be notified');
  } finally {
    area.remove(host.log);
  }
}

async function askDueProbes(host: Host, askedAtMs: Map<string, number>, stop: AbortSignal): Promise<void> {
  for (const group of host.config.workers) {
    const ledger = host.ledger.read();
    if (group.probe === undefined || bakingBundles(ledger, group).length === 0) continue;
    const nowMs = host.clock.monotonicMs();
    const gapMs = probeGapMs(host.config, ledger, group, group.probe.everyMs) ?? 0;
    if (nowMs - (askedAtMs.get(group.name) ?? Number.NEGATIVE_INFINITY) < gapMs) continue;
    askedAtMs.set(group.name, nowMs);
    // Another command may have run the probe a moment ago. The factor allows for a slow probe, which answers late.
    const options = { host: () => host, exclusive: exclusiveAlone, stop, minGapMs: gapMs * 0.9 };
    await askProbeOf(group.name, options);
  }
}

function contactRoundOf(host: Host, stop: AbortSignal): () => Promise<number | undefined> {
  return createContactTurn({
    ...{ host: () => host, exclusive: exclusiveAlone, isObserved: false, stop },
    // Do not pull: a later command does it.
    pull: () => undefined,
    onReactivated: (end, reason) => recordByWrit(host, end, reason),
    onNews: () => undefined,
  });
}

/** After a rollback for lost contact: waits until it is decided whether contact returns without the release, at most a minute. */
async function awaitContactVerdict(host: Host, signal: AbortSignal): Promise<void> {
  const isAsking = (): boolean =>
    Object.values(host.ledger.read().lostContacts ?? {}).some(({ state }) => state === 'asking');
  const turn = contactRoundOf(host, signal);
  while (isAsking() && !signal.aborted) {
    const gapMs = await turn();
    if (gapMs === undefined) return;
    await host.clock.sleep(gapMs, signal);
  }
}

function recordByWrit(host: Host, end: CycleEnd, reason: string): void {
  createRecorder().record(host, end, { by: 'writ', reason });
}
