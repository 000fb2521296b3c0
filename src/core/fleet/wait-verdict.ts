// What `writ fleet wait` says: a function of what was counted at the start and now. A host is done when it confirmed, and
// nobody who leaves makes a share easier to reach. Pure; asks and waits for nothing.
import { given } from '../given.js';
import type { WaitFacts } from './answers.js';

export interface WaitTerms {
  /** Parts of a million share of the hosts that must be done. */
  readonly sharePpm: number;
  readonly withinMs: number;
  /** `notified`: a host where nothing can confirm is done too. */
  readonly accept: 'confirmed' | 'notified';
  /** `settled`: a host is done once the release has also outlived its bake time there. */
  readonly until?: 'active' | 'settled';
}

export interface WaitProgress {
  /** Hosts of the first answer: the denominator never gets smaller. */
  readonly frozen: number;
  readonly elapsedMs: number;
  /** As the verdict before said. */
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
  /** Since when without a break; there while the share is reached. */
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

/** In this order: what holds first is said. */
const rules: readonly (readonly [WaitOutcome, (all: Judged) => boolean])[] = [
  ['nobody', ({ of }) => of === 0],
  // Hosts that confirmed it do not make it one that should be in use.
  ['withdrawn', ({ facts }) => facts.withdrawn === true],
  ['reached', (all) => all.done >= all.needed && isReadSince(all)],
  // What hosts say counts for themselves: one that lies ends no wait that can do without it.
  ['absent', ({ facts }) => facts.absent === true],
  ['ambiguous', (all) => isBeyond(all, all.facts.elsewhere)],
  ['superseded', isSuperseded],
  ['out-of-reach', (all) => isBeyond(all, lostOf(all))],
  ['reached', ({ done, needed, terms, progress }) => done >= needed && isOver(terms, progress)],
  ['time-over', ({ terms, progress }) => isOver(terms, progress)],
];

/** So long a share that is reached waits for a reading that began later. */
const readWithinMs = 120_000;

/** Where the server reads the repository: one that it read before would not know that it was withdrawn meanwhile. */
function isReadSince({ facts: { readAtMs }, progress: { elapsedMs }, reached }: Judged): boolean {
  if (readAtMs === undefined) return true;
  if (reached === undefined) return false;
  return readAtMs >= reached.sinceMs || elapsedMs - reached.elapsedMs >= readWithinMs;
}

function isOver({ withinMs }: WaitTerms, { elapsedMs }: WaitProgress): boolean {
  return elapsedMs >= withinMs;
}

/** Signed metadata knows; without it hosts decide it, each for itself. */
function isSuperseded(all: Judged): boolean {
  const { signedSerial, supersededBy, later } = all.facts;
  return signedSerial === undefined ? isBeyond(all, later) : supersededBy !== undefined;
}

/** Hosts that will not be done by themselves. */
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

/** Of a server that knows no bake time. */
const nobodySettled = { confirmed: 0, notified: 0 };

export interface SettledShare {
  readonly isReached: boolean;
  readonly of: number;
  readonly needed: number;
  /** Confirmed or notified, and settled. */
  readonly done: number;
}

/**
 * Whether a release is good enough to go on to the next channel: hosts that nothing can confirm count, because it outlived its
 * bake time there as well. A silent host does not count as done.
 */
export function judgeSettledShare({ of, settled, withdrawn }: WaitFacts, sharePpm: number): SettledShare {
  const needed = Math.max(1, Math.ceil((of * sharePpm) / 1_000_000));
  const { confirmed, notified } = settled ?? nobodySettled;
  const done = confirmed + notified;
  return { isReached: withdrawn !== true && done >= needed, of, needed, done };
}

/** @param facts as of now */
export function judgeWait(facts: WaitFacts, terms: WaitTerms, progress: WaitProgress): WaitVerdict {
  // Who was excepted for silence and is back counts again; who left is still missing.
  const of = Math.max(progress.frozen, facts.of);
  // At least one: a share of nothing would be reached by a release that nobody took.
  const needed = Math.max(1, Math.ceil((of * terms.sharePpm) / 1_000_000));
  const have = terms.until === 'settled' ? (facts.settled ?? nobodySettled) : facts;
  const done = have.confirmed + (terms.accept === 'notified' ? have.notified : 0);
  const since = progress.reached ?? { sinceMs: facts.atMs, elapsedMs: progress.elapsedMs };
  const reached = done < needed ? undefined : since;
  const judged = { facts, terms, progress, of, needed, done, reached };
  const outcome = rules.find(([, holds]) => holds(judged))?.[0] ?? 'waiting';
  return { outcome, of, needed, done, ...given({ reached }) };
}
