// Tells a machine that started again from two machines under one key: an id that was gone comes back, or, where both have the
// same ids, their counters overtake one another again and again. Pure.

export interface SeenIds {
  readonly installId: string;
  readonly bootId: string;
  /** Pairs that were here before, the newest last, JSON. */
  readonly pastIds: string;
  readonly returns: number;
  /** Challenges that were answered under these ids. */
  readonly answers: number;
}

export interface NextIds {
  readonly installId: string;
  readonly bootId: string;
  /** It answers a challenge: its counter was behind. */
  readonly isAnswer: boolean;
}

export interface JudgedIds {
  readonly pastIds: string;
  readonly returns: number;
  readonly answers: number;
  readonly cloned: boolean;
}

/** Two returns: one is what a machine does that was restored from a snapshot of its memory. */
const returnsOfClones = 2;
const maxPast = 8;
/** A machine whose state was put back answers one challenge; of two that count for themselves, each report outdates the other's. */
const answersOfClones = 4;

/** @param next what a newer report says */
export function judgeIds(seen: SeenIds, next: NextIds): JudgedIds {
  const now = pairOf(next);
  const before = pairOf(seen);
  const past = JSON.parse(seen.pastIds === '' ? '[]' : seen.pastIds) as string[];
  if (now === before || seen.bootId === '') {
    const answers = seen.answers + (next.isAnswer ? 1 : 0);
    const cloned = seen.returns >= returnsOfClones || answers >= answersOfClones;
    return { pastIds: seen.pastIds, returns: seen.returns, answers, cloned };
  }
  const returns = seen.returns + (past.includes(now) ? 1 : 0);
  const others = past.filter((pair) => pair !== now && pair !== before);
  const pastIds = JSON.stringify([...others, before].slice(-maxPast));
  return { pastIds, returns, answers: 0, cloned: returns >= returnsOfClones };
}

function pairOf({ installId, bootId }: { readonly installId: string; readonly bootId: string }): string {
  return `${installId} ${bootId}`;
}
