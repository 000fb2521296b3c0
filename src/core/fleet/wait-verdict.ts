// The verdict of `writ fleet wait`, from the counts at its start and now. A host is done when it confirmed the release. A host that
// leaves the fleet does not make the share easier to reach. Pure.
import { given } from '../given.js';
import type { WaitFacts } from './answers.js';

export interface WaitTerms {
  /** Share of the hosts that must be done, in parts per million. */
  readonly sharePpm: number;
  readonly withinMs: number;
  /** `notified`: a host without a worker that can confirm counts as done once it is notified. */
  readonly accept: 'confirmed' | 'notified';
  /** `settled`: a host counts as done only after the release passed its bake time there. */
  readonly until?: 'active' | 'settled';
}

export interface WaitProgress {
  /** Number of hosts at the start. The denominator never decreases below it. */
  readonly frozen: number;
  readonly elapsedMs: number;
  /** `reached` of the previous verdict. */
  readonly reached?: ReachedSince;
}

export interface ReachedSince {
  /** By the clock of the server. */
  readonly sinceMs: number;
  readonly elapsedMs: number;
}

export type WaitOutcome =
  | 'reached'
  | 'time-over'
  | 'nobody'
  | 'ambiguous'
  | 'out-of-reach'
  | 'withdrawn'
  | 'superseded'
  | 'absent';

export interface WaitVerdict {
  readonly outcome: WaitOutcome | 'waiting';
  readonly of: number;
  readonly needed: number;
  readonly done: number;
  /** Since when the share has been reached without interruption. Undefined while it is not reached. */
  readonly reached?: ReachedSince;
}

export const waitExitCodes: Readonly<Record<WaitOutcome, number>> = {
  reached: 0,
  'time-over': 1,
  nobody: 2,
  ambiguous: 2,
  'out-of-reach': 3,
  withdrawn: 4,
  superseded: 4,
  absent: 2,
};

/** The first rule that holds decides. */
const rules: readonly (readonly [WaitOutcome, (all: Judged) => boolean])[] = [
  ['nobody', ({ of }) => of === 0],
  // A withdrawn release should not be in use, even if hosts confirmed it.
  ['withdrawn', ({ facts }) => facts.withdrawn === true],
  ['reached', (all) => all.done >= all.needed && isReadSince(all)],
  // Hosts are compared one by one: a false report of one host must not end a wait that can succeed without that host.
  ['absent', ({ facts }) => facts.absent === true],
  ['ambiguous', (all) => isBeyond(all, all.facts.elsewhere)],
  ['superseded', isSuperseded],
  ['out-of-reach', (all) => isBeyond(all, lostOf(all))],
  ['reached', ({ done, needed, terms, progress }) => done >= needed && isOver(terms, progress)],
  ['time-over', ({ terms, progress }) => isOver(terms, progress)],
];

/** How long a wait with a reached share continues for a reading of the repository that began later. */
const readWithinMs = 120_000;

/**
 * If the server reads the repository, it must have read it after the share was reached: an earlier reading does not show a
 * withdrawal since then.
 */
function isReadSince({ facts: { readAtMs }, progress: { elapsedMs }, reached }: Judged): boolean {
  if (readAtMs === undefined) return true;
  if (reached === undefined) return false;
  return readAtMs >= reached.sinceMs || elapsedMs - reached.elapsedMs >= readWithinMs;
}

function isOver({ withinMs }: WaitTerms, { elapsedMs }: WaitProgress): boolean {
  return elapsedMs >= withinMs;
}

/** Signed metadata decides. Without it, each host decides for itself. */
function isSuperseded(all: Judged): boolean {
  const { signedSerial, supersededBy, later } = all.facts;
  return signedSerial === undefined ? isBeyond(all, later) : supersededBy !== undefined;
}

/** Number of hosts that do not become done without an intervention. */
function lostOf({ facts, terms }: Judged): number {
  const failed = terms.until === 'settled' ? (facts.settled?.failed ?? 0) : 0;
  return facts.refused + facts.later + facts.elsewhere + failed + (facts.cloned ?? 0);
}

function isBeyond({ of, needed }: Judged, lost: number): boolean {
  return of - lost < needed;
}

interface Judged {
  readonly facts: WaitFacts;
  readonly terms: WaitTerms;
  readonly progress: WaitProgress;
  readonly of: number;
  readonly needed: number;
  readonly done: number;
  readonly reached: ReachedSince | undefined;
}

/** For a server that does not report bake times. */
const noneSettled = { confirmed: 0, notified: 0 };

export interface SettledShare {
  readonly isReached: boolean;
  readonly of: number;
  readonly needed: number;
  /** Confirmed or notified, and settled. */
  readonly done: number;
}

/**
 * Decides whether a release may continue to the next channel. Hosts without a worker that can confirm count, because the release
 * passed its bake time there too. A silent host does not count as done.
 */
export function judgeSettledShare({ of, settled, withdrawn }: WaitFacts, sharePpm: number): SettledShare {
  const needed = Math.max(1, Math.ceil((of * sharePpm) / 1_000_000));
  const { confirmed, notified } = settled ?? noneSettled;
  const done = confirmed + notified;
  return { isReached: withdrawn !== true && done >= needed, of, needed, done };
}

/**
 * Decides whether a wait is over, by the first rule of the table that matches. Pure; the caller waits and calls again. Throws
 * nothing.
 * @param facts counted now; `progress` has the `reached` of the previous verdict
 * @returns `outcome` is `waiting` while no rule matches, and final otherwise (see waitExitCodes). `of` is the greater of the
 *   number now and at the start; `needed` the hosts for the share, rounded up, at least 1; `done` the hosts that count.
 *   `reached` is absent while `done` is below `needed`. Example: no hosts give `nobody`.
 */
export function judgeWait(facts: WaitFacts, terms: WaitTerms, progress: WaitProgress): WaitVerdict {
  // A host that was excepted for silence counts again when it reports. A host that left still counts as missing.
  const of = Math.max(progress.frozen, facts.of);
  // At least one host: otherwise a release without any host would reach its share.
  const needed = Math.max(1, Math.ceil((of * terms.sharePpm) / 1_000_000));
  const have = terms.until === 'settled' ? (facts.settled ?? noneSettled) : facts;
  const done = have.confirmed + (terms.accept === 'notified' ? have.notified : 0);
  const since = progress.reached ?? { sinceMs: facts.atMs, elapsedMs: progress.elapsedMs };
  const reached = done < needed ? undefined : since;
  const judged = { facts, terms, progress, of, needed, done, reached };
  const outcome = rules.find(([, holds]) => holds(judged))?.[0] ?? 'waiting';
  return { outcome, of, needed, done, ...given({ reached }) };
}
