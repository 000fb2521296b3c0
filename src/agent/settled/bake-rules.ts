// When a release has settled: after its bake time, of which an agent observed enough, and without evidence of failure. Pure.
// docs/adr/0048-bake-time.md has the reasons.
import { given } from '../../core/given.js';
import type { AcceptedRelease, Bake, SettledRelease } from '../state/ledger.js';

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
  /** Some worker of each group that uses the release has taken it, and lives. */
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
  if (!isTaken) return { ...bake, startedAtMs, ...seen, untakenAtMs: nowMs };
  // Workers took the release at an unknown time: since the last observation, or within a move that notified them for minutes.
  if (isUntaken(bake) || isUnobservedYet(bake) || !isTakenSince || isSilent)
    return { ...bake, startedAtMs, ...seen };
  // The last observation may have been long before this bake began; and wall time alone may jump forward.
  const addedMs = Math.min(elapsedMs, nowMs - bake.seenAtMs);
  return {
    ...{ ...bake, startedAtMs, ...seen },
    observedMs: bake.observedMs + Math.max(0, Math.round(addedMs)),
  };
}

/** @returns the bake with the times of a later look that was not written; the bake as it is where they are of another one */
export function withLaterLook(bake: Bake, later: Bake | undefined): Bake {
  if (later === undefined || !isSameRelease(bake, later) || later.startedAtMs !== bake.startedAtMs)
    return bake;
  const { observedMs, seenAtMs, untakenAtMs } = later;
  return { ...bake, observedMs, seenAtMs, ...given({ untakenAtMs }) };
}

/** True where the last look found a group of which no living worker has taken the release. */
export function isUntaken({ untakenAtMs, seenAtMs }: Bake): boolean {
  return untakenAtMs === seenAtMs;
}

/** True until the first observation after the start of the bake. */
export function isUnobservedYet({ startedAtMs, seenAtMs }: Bake): boolean {
  return seenAtMs <= startedAtMs;
}

/** True where no agent has looked at the release for so long that the time since does not count. */
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
  // A row of wrong answers that began within the bake time is finished first.
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
