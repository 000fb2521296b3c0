// When a release has settled: after its bake time, of which an agent observed enough, and without evidence of failure. Pure.
// docs/adr/0048-bake-time.md has the reasons.
import { given } from '../../core/given.js';
import type { AcceptedRelease, Bake, ProcessEnd, SettledRelease } from '../state/ledger.js';
import { type BakingGroup, type BakingWorker, type EvidenceOptions, isTaker } from './evidence-rules.js';
import { countOrdinaryEnds } from './ordinary-ends.js';
import { isInBake, ranInBakeMs } from './runs-rules.js';

/** An agent that runs observes, and writes it, more often. */
const unseenAfterMs = 60_000;
/** After so many bake times of clock time a release settles unobserved: a host without an agent must not bake for ever. */
const unobservedAfterBakes = 3;
/** How many settled releases of a bundle are remembered. */
const maxSettled = 3;

export interface BakeNow {
  readonly nowMs: number;
  readonly bootId: string;
}

/** @returns the bake of a release that became active at this moment */
export function startBake({ serial, manifestDigest }: AcceptedRelease, { nowMs, bootId }: BakeNow): Bake {
  return { serial, manifestDigest, startedAtMs: nowMs, observedMs: 0, seenAtMs: nowMs, bootId };
}

export interface BakeObservation extends BakeNow {
  /** Since the last observation by the same process, by the monotonic clock; undefined at its first one, which adds no time. */
  readonly elapsedMs: number | undefined;
  /** Some worker of each group that uses the release has taken it, and runs. */
  readonly isTaken: boolean;
  /** Some worker of each group had taken it at the last observation already, in the process that it has now. */
  readonly isTakenSince: boolean;
  /**
   * The last answer of a probe that had passed did not come, or the successor of a process is not notified yet: whether the release
   * still works was not observed.
   */
  readonly isSilent: boolean;
}

/** @returns the bake with this observation; a release that no worker uses proves nothing by its age */
export function withObserved(
  bake: Bake,
  { nowMs, bootId, elapsedMs = 0, isTaken, isTakenSince, isSilent }: BakeObservation,
): Bake {
  const seen = { bootId, seenAtMs: nowMs };
  // A clock that was set back would prolong the bake time by as much.
  const startedAtMs = Math.min(bake.startedAtMs, nowMs);
  if (!isTaken) {
    const { untakenSinceMs = isUnobservedYet(bake) ? startedAtMs : nowMs } = bake;
    const untaken = { untakenAtMs: nowMs, untakenSinceMs: Math.min(untakenSinceMs, nowMs) };
    return { ...bake, startedAtMs, ...seen, ...untaken };
  }
  // Workers took the release at an unknown time: since the last observation, or within a move that notified them for minutes.
  if (isUntaken(bake) || isUnobservedYet(bake) || !isTakenSince || isSilent)
    return { ...bake, startedAtMs, ...seen };
  // The last observation may have been long before this bake began; and wall time alone may jump forward.
  const addedMs = Math.min(elapsedMs, nowMs - bake.seenAtMs);
  const { untakenSinceMs: _, ...taken } = bake;
  return {
    ...{ ...taken, startedAtMs, ...seen },
    observedMs: bake.observedMs + Math.max(0, Math.round(addedMs)),
  };
}

/** @returns the bake with the times of a later observation that was not written; unchanged where that is of another bake */
export function withLaterTimes(bake: Bake, later: Bake | undefined): Bake {
  if (later === undefined || !isSameRelease(bake, later) || later.startedAtMs !== bake.startedAtMs)
    return bake;
  const { observedMs, seenAtMs, untakenAtMs, untakenSinceMs } = later;
  const { untakenSinceMs: _, ...known } = bake;
  return { ...known, observedMs, seenAtMs, ...given({ untakenAtMs, untakenSinceMs }) };
}

/** True where the last observation found a group without a running worker that has taken the release. */
export function isUntaken({ untakenAtMs, seenAtMs }: Bake): boolean {
  return untakenAtMs === seenAtMs;
}

/** True until the first observation after the start of the bake. */
export function isUnobservedYet({ startedAtMs, seenAtMs }: Bake): boolean {
  return seenAtMs <= startedAtMs;
}

/** True where the last observation is so old that the time since does not count. */
export function isUnseen({ seenAtMs }: Bake, nowMs: number): boolean {
  return nowMs - seenAtMs >= unseenAfterMs;
}

/** The agent that ran before did not end in order, and the machine has booted since. */
export function withAbruptBoot(bake: Bake, { nowMs, bootId }: BakeNow): Bake {
  return { ...bake, bootId, seenAtMs: nowMs, abruptBoots: (bake.abruptBoots ?? 0) + 1 };
}

export type BakePhase = 'baking' | 'settled' | 'unobserved' | 'failed';

/** @returns where a bake stands; a release with evidence of failure never settles */
export function judgeBake(
  bake: Bake,
  {
    forMs,
    nowMs,
    isDoubted,
    isSilent,
  }: Pick<BakeObservation, 'nowMs' | 'isSilent'> & { readonly forMs: number; readonly isDoubted: boolean },
): BakePhase {
  if (bake.failure !== undefined) return 'failed';
  // A row of wrong answers or of restarts that began within the bake time is finished first.
  if (isDoubted) return 'baking';
  // After a row of wrong answers the observed time is over, and the present process may be a new one.
  if (bake.observedMs >= forMs && !isSilent && !isUntaken(bake)) return 'settled';
  // Until a worker takes the release, nothing can be known of it: a daemon that is stopped for hours would otherwise make any
  // release a target of later restores.
  const sinceMs = Math.max(bake.startedAtMs, Math.min(bake.untakenAtMs ?? 0, nowMs));
  return nowMs - sinceMs >= unobservedAfterBakes * forMs ? 'unobserved' : 'baking';
}

/** @returns milliseconds until the bake time ends, as long as an agent observes it; 0 when it is over */
export function bakeLeftMs({ observedMs }: Bake, forMs: number): number {
  return Math.max(0, forMs - observedMs);
}

/** @returns the settled releases of a bundle with one more, newest first; one that settled before moves to the front */
export function addSettled(
  known: readonly SettledRelease[],
  settled: SettledRelease,
): readonly SettledRelease[] {
  return [settled, ...known.filter((one) => !isSameRelease(one, settled))].slice(0, maxSettled);
}

/** Two releases with the same files are two releases: a serial is part of what was published. */
export function isSameRelease(one: AcceptedRelease, other: AcceptedRelease): boolean {
  return one.serial === other.serial && one.manifestDigest === other.manifestDigest;
}

type UnsteadyOptions = Pick<EvidenceOptions, 'bake' | 'forMs' | 'nowMs'>;

/** After so many bake times a worker without a process counts as stopped by a person. */
const stoppedAfterBakes = 3;
/** A process that ran for a shorter part of the bake time is evidence of failure. */
const shortShare = 1 / 3;

/**
 * A crash loop is no failure of the release before its restarts are counted, and other workers of its group may work meanwhile: until
 * the worker is steady again the release does not settle (docs/adr/0074-unsteady-workers.md).
 * @returns keys of the workers with a process that ended within the bake time, and no process since that proves the release
 */
export function findUnsteadyWorkers(groups: readonly BakingGroup[], options: UnsteadyOptions): string[] {
  return groups.flatMap(({ workers }) =>
    workers.filter((one) => isUnsteady(one, options)).map(({ key }) => key),
  );
}

function isUnsteady(worker: BakingWorker, options: UnsteadyOptions): boolean {
  const { bake, forMs, nowMs } = options;
  const { gone, ends = [], isUntaken } = worker.runs ?? {};
  const last = ends.at(-1);
  // A person, or the worker itself, ended it in order.
  if (last !== undefined && last.kind === 'clean' && isInBake(last, bake)) return false;
  const inBake = ends.filter((one) => one.kind !== 'clean' && isInBake(one, bake));
  const goneAtMs = gone !== undefined && gone.atMs > bake.startedAtMs && isUntaken !== true ? gone.atMs : 0;
  const endedAtMs = Math.max(goneAtMs, inBake.at(-1)?.atMs ?? 0);
  const sinceMs = nowMs - endedAtMs;
  if (endedAtMs === 0 || sinceMs >= stoppedAfterBakes * forMs) return false;
  const count = inBake.length + (goneAtMs > 0 ? 1 : 0);
  if (count <= ordinaryEnds(worker, options)) return false;
  if (!isTaker(worker)) return true;
  const short = inBake.filter((one) => ranInBakeMs(one, bake) < shortShare * forMs).length;
  return sinceMs < (short > 1 ? forMs : shortShare * forMs);
}

/** A daemon that always ended as often is no sign of a faulty release, and a release has to settle on it. */
function ordinaryEnds({ runs }: BakingWorker, { bake, forMs, nowMs }: UnsteadyOptions): number {
  if (runs === undefined) return 0;
  const isCounted = (one: ProcessEnd): boolean => one.kind !== 'clean';
  return countOrdinaryEnds(runs, bake, { forMs, nowMs, isCounted });
}

/**
 * @param deadlineMs of the notifications and probes of the groups that use the release
 * @returns epoch milliseconds since when no worker has had the release; undefined while that may end by itself
 */
export function untakenTooLongSinceMs(
  { untakenSinceMs }: Pick<Bake, 'untakenSinceMs'>,
  {
    forMs,
    nowMs,
    deadlineMs,
  }: { readonly forMs: number; readonly nowMs: number; readonly deadlineMs: number },
): number | undefined {
  if (untakenSinceMs === undefined) return undefined;
  return nowMs - untakenSinceMs >= stoppedAfterBakes * forMs + deadlineMs ? untakenSinceMs : undefined;
}
