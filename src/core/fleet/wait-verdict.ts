// What `writ fleet wait` says: a function of what was counted at the start and now. A host is done when it confirmed, and
// nobody who leaves makes a share easier to reach. Pure; asks and waits for nothing.
import type { WaitFacts } from './answers.js';

export interface WaitTerms {
  /** Parts of a million of the hosts that have to be done. */
  readonly sharePpm: number;
  readonly withinMs: number;
  /** `notified`: a host where nothing can confirm is done too. */
  readonly accept: 'confirmed' | 'notified';
}

export interface WaitProgress {
  /** Hosts of the first answer: the denominator never gets smaller. */
  readonly frozen: number;
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
  ['ambiguous', ({ facts }) => facts.ambiguous === true],
  ['reached', ({ done, needed }) => done >= needed],
  ['withdrawn', ({ facts }) => facts.withdrawn === true],
  ['superseded', ({ facts }) => facts.supersededBy !== undefined],
  ['absent', ({ facts }) => facts.absent === true],
  ['out-of-reach', ({ of, needed, facts }) => of - facts.refused < needed],
  ['time-over', ({ terms, progress }) => progress.elapsedMs >= terms.withinMs],
];

interface Judged {
  readonly facts: WaitFacts;
  readonly terms: WaitTerms;
  readonly progress: WaitProgress;
  readonly of: number;
  readonly needed: number;
  readonly done: number;
}

/** @param facts as of now */
export function judgeWait(facts: WaitFacts, terms: WaitTerms, progress: WaitProgress): WaitVerdict {
  // Who was excepted for silence and is back counts again; who left is still missing.
  const of = Math.max(progress.frozen, facts.of);
  // At least one: a share of nothing would be reached by a release that nobody took.
  const needed = Math.max(1, Math.ceil((of * terms.sharePpm) / 1_000_000));
  const done = facts.confirmed + (terms.accept === 'notified' ? facts.notified : 0);
  const judged = { facts, terms, progress, of, needed, done };
  const outcome = rules.find(([, holds]) => holds(judged))?.[0] ?? 'waiting';
  return { outcome, of, needed, done };
}
