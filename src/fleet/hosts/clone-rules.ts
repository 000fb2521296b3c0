// Tells a machine that started again from two machines under one key: an id that was gone comes back. Pure.

export interface SeenIds {
  readonly installId: string;
  readonly bootId: string;
  /** Pairs that were here before, the newest last, JSON. */
  readonly pastIds: string;
  readonly returns: number;
}

export interface JudgedIds {
  readonly pastIds: string;
  readonly returns: number;
  readonly cloned: boolean;
}

/** Two returns: one is what a machine does that was restored from a snapshot of its memory. */
const returnsOfClones = 2;
const maxPast = 8;

/** @param next what a newer report says */
export function judgeIds(
  seen: SeenIds,
  next: { readonly installId: string; readonly bootId: string },
): JudgedIds {
  const now = pairOf(next);
  const before = pairOf(seen);
  const past = JSON.parse(seen.pastIds === '' ? '[]' : seen.pastIds) as string[];
  if (now === before || seen.bootId === '')
    return { pastIds: seen.pastIds, returns: seen.returns, cloned: seen.returns >= returnsOfClones };
  const returns = seen.returns + (past.includes(now) ? 1 : 0);
  const others = past.filter((pair) => pair !== now && pair !== before);
  const pastIds = JSON.stringify([...others, before].slice(-maxPast));
  return { pastIds, returns, cloned: returns >= returnsOfClones };
}

function pairOf({ installId, bootId }: { readonly installId: string; readonly bootId: string }): string {
  return `${installId} ${bootId}`;
}
