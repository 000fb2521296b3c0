// Judges the releases in their bake time by one observation of their workers: each one has failed, has settled, or bakes on.
// Writes the ledger; restores nothing itself.
import { isDeepStrictEqual } from 'node:util';
import { bakeOf, setOf } from '../../core/config/config.js';
import { readAcceptedReleases } from '../generations/generation-contents.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { newCycleId } from '../job/progress.js';
import { recordEvent } from '../job/record.js';
import { withObservedRuns } from '../runs/note-runs.js';
import type { ObservedRun } from '../runs/observe-runs.js';
import { type FailedRelease, failedIn } from '../settled/bake-failure.js';
import {
  findUnsteadyWorkers,
  isSameRelease,
  isUnobservedYet,
  isUntaken,
  judgeBake,
  withLaterTimes,
  withObserved,
} from '../settled/bake-rules.js';
import { isContactOpen } from '../settled/contact-rules.js';
import {
  type BakingGroup,
  bakingGroups,
  findFailure,
  findSuccessors,
  findTakers,
  isDoubted,
  isSilent,
  isTaken,
  isTakenSince,
} from '../settled/evidence-rules.js';
import { type ActiveReleaseMap, withBakes, withFailure, withSettled } from '../settled/settled-ledger.js';
import type { Host } from '../state/host.js';
import type { Bake, BakeFailure, Ledger } from '../state/ledger.js';

export interface BakeWatch {
  readonly observed: ReadonlyMap<string, ObservedRun>;
  readonly bootId: string;
  /** Milliseconds since the last observation by this process, by the monotonic clock; undefined for the first one. */
  readonly elapsedMs: number | undefined;
  /** The bakes after that observation, which may not have been written. */
  readonly unwritten?: Readonly<Record<string, Bake>> | undefined;
  /** As that report has them; left out: no time is observed. */
  readonly takersBefore?: BakeReport['takers'] | undefined;
  /** True for a command, because it keeps no bakes between its observations. Left out: observed time is written every 30 s. */
  readonly isEachWritten?: boolean;
  /** Names of groups that were not observed: the bake time of the bundles that they use does not pass. Left out: none. */
  readonly unseenGroups?: readonly string[];
}

export interface BakeReport {
  /** The active releases with evidence of failure, also from an earlier observation. */
  readonly failed: readonly FailedRelease[];
  /** Names of the bundles with a release that settled now. */
  readonly settled: readonly string[];
  /** The bakes after this observation. */
  readonly bakes: Readonly<Record<string, Bake>> | undefined;
  /** The living workers that have taken a release in its bake time, each with its process. */
  readonly takers: ReadonlySet<string>;
}

/** Observed time is written so often: a flush at each observation would write to the disk all day. */
const noteEveryMs = 30_000;

/** Writes the observation to the ledger, and judges each bake. @throws WritError DISK_* */
export function judgeBakes(host: Host, watch: BakeWatch): BakeReport {
  const { observed, bootId, elapsedMs, unwritten, isEachWritten = false, unseenGroups = [] } = watch;
  const takersBefore = watch.takersBefore ?? new Set();
  const takers = new Set<string>();
  const nowMs = host.clock.nowMs();
  const before = host.ledger.read();
  const active = bakingReleases(host, before);
  const isDead = (key: string): boolean => observed.get(key)?.isDead === true;
  const withRunsNow = withObservedRuns(host, before, { observed, bootId, nowMs });
  let ledger = withRunsNow;
  // A move that the disk could not commit leaves the bake of a release that is not active any more.
  const bakes = Object.entries(ledger.bakes ?? {}).filter(([bundle, bake]) => {
    const release = active.get(bundle);
    return release !== undefined && isSameRelease(release, bake);
  });
  ledger = withBakes(
    ledger,
    bakes.map(([bundle, bake]) => {
      const groups = bakingGroups(bundle, { config: host.config, ledger: withRunsNow, isDead });
      const isUnseen = groups.some(({ group }) => unseenGroups.includes(group));
      for (const taker of findTakers(groups)) takers.add(taker);
      const seen = {
        isTaken: isTaken(groups),
        isTakenSince: isTakenSince(groups, takersBefore),
        isSilent: isUnseen || isUnobserved(groups, bake),
      };
      const known = withLaterTimes(bake, unwritten?.[bundle]);
      return [bundle, withObserved(known, { nowMs, bootId, elapsedMs, ...seen })] as const;
    }),
  );
  // Bundles after the end of their own bake time, and whether it was observed.
  const over = new Map<string, boolean>();
  for (const [bundle] of bakes) {
    const bake = ledger.bakes?.[bundle];
    if (bake === undefined) continue;
    const groups = bakingGroups(bundle, { config: host.config, ledger, isDead });
    const options = { bake, ...bakeOf(host.config, bundle), nowMs };
    const failure = bake.failure ?? findFailure(groups, options);
    if (failure !== undefined) {
      ledger = withFailure(ledger, failingBundles(host, ledger, { bundle, failure }), failure);
      continue;
    }
    const open = { isDoubted: isUndecided(groups, options), isSilent: isUnobserved(groups, bake) };
    const phase = judgeBake(bake, { ...options, ...open });
    if (phase === 'settled' || phase === 'unobserved') over.set(bundle, phase === 'settled');
  }
  const ready = [...over.keys()].filter((bundle) => ledger.bakes?.[bundle]?.failure === undefined);
  const generation = activeGenerationNumber(host.paths);
  if (generation !== undefined) {
    const isObserved = (set: readonly string[]): boolean => set.every((name) => over.get(name) !== false);
    const settling = { active, config: host.config, generation, nowMs, isObserved };
    ledger = withSettled(ledger, ready, settling);
  }
  // Status subtracts the time since the last written observation. A process that observes again writes its first one at once.
  const isFirst = ({ bakes = {} }: Ledger, bundle: string): boolean =>
    elapsedMs !== undefined && bakes[bundle] !== undefined && isUnobservedYet(bakes[bundle]);
  const gapMs = (bundle: string): number => (isEachWritten || isFirst(before, bundle) ? 1 : noteEveryMs);
  if (isWorthNoting(before, ledger, gapMs)) host.ledger.write(ledger);
  return {
    ...{ bakes: ledger.bakes, takers },
    failed: failedIn(ledger).filter((one) => bakes.some(([bundle]) => bundle === one.bundle)),
    settled: ready.filter((bundle) => ledger.bakes?.[bundle] === undefined),
  };
}

/** True while a probe gives no answer, or a process that replaced another one is not notified yet. */
function isUnobserved(groups: readonly BakingGroup[], bake: Bake): boolean {
  return isSilent(groups) || findSuccessors(groups, bake).length > 0;
}

/** True while a probe fails, a worker may be in a crash loop, or the server is silent: that is decided before the bake time ends. */
function isUndecided(
  groups: readonly BakingGroup[],
  options: { readonly bake: Bake; readonly forMs: number; readonly nowMs: number },
): boolean {
  const { bake, nowMs } = options;
  const isUnsteady = findUnsteadyWorkers(groups, options).length > 0;
  return isDoubted(groups) || isUnsteady || isContactOpen(bake.contact, { ...bake, nowMs });
}

/**
 * Observed time alone does not justify a write at each observation. Evidence does: it is written before anything acts on it, so
 * that it survives a crash of the agent.
 */
function isWorthNoting(before: Ledger, after: Ledger, gapMs: (bundle: string) => number): boolean {
  const withoutTimes = ({ bakes = {}, settledReleases, runs }: Ledger): unknown => [
    Object.entries(bakes).map(([bundle, bake]) => {
      const { observedMs: _, seenAtMs: __, untakenAtMs: ___, ...rest } = bake;
      return [bundle, rest, isUntaken(bake)];
    }),
    ...[settledReleases, runs],
  ];
  if (!isDeepStrictEqual(withoutTimes(before), withoutTimes(after))) return true;
  return Object.entries(after.bakes ?? {}).some(
    ([bundle, { seenAtMs }]) => seenAtMs - (before.bakes?.[bundle]?.seenAtMs ?? 0) >= gapMs(bundle),
  );
}

/** Outside bake times no record of a release is read. */
function bakingReleases(host: Host, { bakes }: Ledger): ActiveReleaseMap {
  return bakes === undefined ? new Map() : activeReleases(host);
}

/** @returns the releases that are active, by bundle */
export function activeReleases({ paths }: Pick<Host, 'paths'>): ActiveReleaseMap {
  const generation = activeGenerationNumber(paths);
  return generation === undefined ? new Map() : readAcceptedReleases(paths, generation);
}

/**
 * A failed worker does not show which of its bundles made it fail: all of them that are in their bake time are taken back, each
 * with its set.
 */
function failingBundles(
  host: Host,
  { bakes = {} }: Ledger,
  { bundle, failure }: { readonly bundle: string; readonly failure: BakeFailure },
): string[] {
  const groups = host.config.workers.filter((one) => failure.groups.includes(one.name));
  const used = failure.groups.length === 0 ? Object.keys(bakes) : groups.flatMap((one) => one.uses);
  const names = [bundle, ...used].flatMap((one) => setOf(host.config, one));
  return [...new Set(names)].filter((one) => bakes[one] !== undefined);
}

/** Names in the history the releases that an observation settled. */
export function recordSettled(host: Host, { settled }: BakeReport): void {
  const { settledReleases = {} } = host.ledger.read();
  const texts = settled.flatMap((bundle) => {
    const [newest] = settledReleases[bundle] ?? [];
    return newest === undefined
      ? []
      : [`${bundle} ${newest.serial}${newest.isObserved ? '' : ' (not observed)'}`];
  });
  if (texts.length === 0) return;
  const reason = `settled: ${texts.join(', ')}`;
  recordEvent(host, { cycle: newCycleId(), trigger: 'pending', reason, problems: [] });
}
