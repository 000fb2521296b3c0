// The bake time of the active release of each bundle, and the condition that it waits for, for the status report. Decides nothing;
// reads only the ledger.
import { bakeOf, setOf } from '../../core/config/config.js';
import { given } from '../../core/given.js';
import type { BakeStatus, BakeWait, CommandObservation, StatusReport } from '../../core/status/status.js';
import { groupOf } from '../notify/worker-ledger.js';
import {
  bakeLeftMs,
  findUnsteadyWorkers,
  isSameRelease,
  isUnobservedYet,
  isUnseen,
  isUntaken,
  untakenTooLongSinceMs,
} from '../settled/bake-rules.js';
import { isContactOpen } from '../settled/contact-rules.js';
import {
  type BakingGroup,
  bakingGroups,
  doubtedWorkers,
  findSuccessors,
  silentWorkers,
  untakenGroups,
} from '../settled/evidence-rules.js';
import { isInBake } from '../settled/runs-rules.js';
import type { Host } from '../state/host.js';
import type { AcceptedRelease, Bake, Ledger } from '../state/ledger.js';

/** Three observations of a command that makes one each 10 s. */
const observationValidMs = 30_000;

/** @returns the member that a command writes to the status file after each observation of these bundles; it is valid for 30 s */
export function startObservation(bundles: readonly string[], nowMs: number): CommandObservation {
  return { untilMs: nowMs + observationValidMs, bundles };
}

/** @returns the observation of a command; undefined if it has expired, or if the clock was set back since */
export function readObservation(
  known: Pick<StatusReport, 'observation'> | undefined,
  nowMs: number,
): CommandObservation | undefined {
  const { observation } = known ?? {};
  if (observation === undefined) return undefined;
  const leftMs = observation.untilMs - nowMs;
  return leftMs > 0 && leftMs <= observationValidMs ? observation : undefined;
}

export interface BakeFacts {
  readonly bundle: string;
  readonly release: AcceptedRelease;
  readonly nowMs: number;
  /** True while an agent runs, or a command observes this bake time. */
  readonly isObserved: boolean;
}

/** @returns undefined for a release without a bake time, and before the first run of an agent of this version */
export function bakeStatus(
  { config }: Pick<Host, 'config'>,
  ledger: Ledger,
  { bundle, release, nowMs, isObserved }: BakeFacts,
): BakeStatus | undefined {
  const bake = ledger.bakes?.[bundle];
  if (bake !== undefined && isSameRelease(bake, release)) {
    const { failure } = bake;
    const ends = endsSince(config, ledger, { bundle, bake });
    if (failure !== undefined)
      return { state: 'failed', cause: failure.cause, text: failure.text, atMs: failure.atMs, ends };
    const { forMs } = bakeOf(config, bundle);
    const groups = bakingGroups(bundle, { config, ledger });
    const facts = { groups, forMs, nowMs, isObserved };
    const waitsFor = findBakeWait(bake, facts) ?? findSetWait(config, ledger, { bundle, nowMs, isObserved });
    const untakenSinceMs = untakenTooLongSinceMs(bake, {
      forMs,
      nowMs,
      deadlineMs: longestDeadlineMs(config, bundle),
    });
    return {
      state: 'baking',
      leftMs: leftNow(bake, facts),
      forMs,
      ...(isUntakenNow(bake, facts) ? { untaken: true } : {}),
      ...given({ waitsFor, untakenSinceMs }),
      ends,
    };
  }
  const settled = ledger.settledReleases?.[bundle]?.find((one) => isSameRelease(one, release));
  return settled && { state: 'settled', atMs: settled.atMs, observed: settled.isObserved };
}

/** @returns milliseconds that the slowest group with this bundle may need for a notification and its probe */
function longestDeadlineMs({ workers }: Host['config'], bundle: string): number {
  const using = workers.filter((one) => one.uses.includes(bundle));
  return Math.max(0, ...using.map(({ reset, probe }) => (reset?.timeoutMs ?? 0) + (probe?.deadlineMs ?? 0)));
}

/**
 * The agent writes observed time to the ledger at intervals only. While the bake time passes, the time since the last write counts too.
 * @returns milliseconds
 */
function leftNow(bake: Bake, facts: BakeWaitFacts): number {
  const isStopped = isUntaken(bake) || isUnobservedYet(bake) || findStop(bake, facts) !== undefined;
  const sinceMs = isStopped ? 0 : Math.max(0, facts.nowMs - bake.seenAtMs);
  return Math.max(0, bakeLeftMs(bake, facts.forMs) - sinceMs);
}

/** @returns the other bundles of its set that still bake; undefined until the bake time of this bundle is over */
function findSetWait(
  config: Host['config'],
  ledger: Ledger,
  { bundle, ...now }: Pick<BakeFacts, 'bundle' | 'nowMs' | 'isObserved'>,
): BakeWait | undefined {
  const isOver = (name: string): boolean => {
    const bake = ledger.bakes?.[name];
    if (bake === undefined) return true;
    const groups = bakingGroups(name, { config, ledger });
    const facts = { groups, forMs: bakeOf(config, name).forMs, ...now };
    return leftNow(bake, facts) === 0 && findBakeWait(bake, facts) === undefined;
  };
  const of = isOver(bundle) ? setOf(config, bundle).filter((name) => !isOver(name)) : [];
  return of.length > 0 ? { what: 'set', of } : undefined;
}

/** How often processes of workers that use the release ended since its activation; workers without an end are left out. */
function endsSince(
  { workers }: Host['config'],
  { runs = {} }: Ledger,
  { bundle, bake }: { readonly bundle: string; readonly bake: Bake },
): NonNullable<BakeStatus['ends']> {
  const using = workers.filter((one) => one.uses.includes(bundle)).map((one) => one.name);
  return Object.entries(runs).flatMap(([worker, { ends }]) => {
    if (!using.includes(groupOf(worker))) return [];
    const own = ends.filter((one) => isInBake(one, bake));
    const count = (kind: 'abnormal' | 'unrecorded'): number => own.filter((one) => one.kind === kind).length;
    const counts = { worker, abnormal: count('abnormal'), unexplained: count('unrecorded') };
    return counts.abnormal + counts.unexplained === 0 ? [] : [counts];
  });
}

export interface BakeWaitFacts extends Pick<BakeFacts, 'isObserved'> {
  /** The groups that use the bundle. */
  readonly groups: readonly BakingGroup[];
  readonly forMs: number;
  readonly nowMs: number;
}

/**
 * @returns `what` is missing, and `of` the workers or groups: why the bake time does not pass, else why the release has not
 *   settled after it; undefined while the time passes, and when nothing is missing
 */
export function findBakeWait(bake: Bake, facts: BakeWaitFacts): BakeWait | undefined {
  const stop = findStop(bake, facts);
  if (stop !== undefined || leftNow(bake, facts) > 0) return stop;
  const doubted = doubtedWorkers(facts.groups);
  if (doubted.length > 0) return { what: 'probe', of: doubted };
  const unsteady = findUnsteadyWorkers(facts.groups, { ...facts, bake });
  if (unsteady.length > 0) return { what: 'worker', of: unsteady };
  return isContactOpen(bake.contact, { ...bake, nowMs: facts.nowMs }) ? { what: 'contact' } : undefined;
}

/** @returns why the bake time does not pass; undefined while it passes */
function findStop(bake: Bake, { groups, nowMs, isObserved }: BakeWaitFacts): BakeWait | undefined {
  // Also right after a command: no bake time passes until the next observation.
  if (!isObserved) return { what: 'agent' };
  if (isUntakenNow(bake, { groups })) {
    const untaken = untakenGroups(groups);
    // If the last observation found a dead process, the ledger does not show it: name all groups.
    return { what: 'worker', of: untaken.length > 0 ? untaken : groups.map(({ group }) => group) };
  }
  // The agent has just started, or a notification of workers takes long.
  if (isUnseen(bake, nowMs)) return { what: 'observation' };
  const successors = findSuccessors(groups, bake);
  if (successors.length > 0) return { what: 'successor', of: successors };
  const silent = silentWorkers(groups);
  return silent.length > 0 ? { what: 'probe', of: silent } : undefined;
}

/** The last observation found no living worker with the release, and no worker has confirmed it since, for example to a command. */
function isUntakenNow(bake: Bake, { groups }: Pick<BakeWaitFacts, 'groups'>): boolean {
  if (!isUntaken(bake)) return false;
  const isLater = ({ workers }: BakingGroup): boolean =>
    workers.some(({ entry }) => entry.atMs > bake.seenAtMs);
  return untakenGroups(groups).length > 0 || !groups.some(isLater);
}
