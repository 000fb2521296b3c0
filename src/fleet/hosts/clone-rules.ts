// Distinguishes a restarted machine from two machines with one key. Of two machines, earlier ids return; if both have the same ids,
// their counters repeatedly overtake each other. Pure.

export interface SeenIds {
  readonly installId: string;
  readonly bootId: string;
  /** Earlier pairs of installation and boot id, as a JSON array, the newest last. */
  readonly pastIds: string;
  readonly returns: number;
  /** Challenges that were answered with the current ids. */
  readonly answers: number;
}

export interface NextIds {
  readonly installId: string;
  readonly bootId: string;
  /** Whether the report answers a challenge, because its counter was too low. */
  readonly isAnswer: boolean;
}

export interface JudgedIds {
  readonly pastIds: string;
  readonly returns: number;
  readonly answers: number;
  readonly cloned: boolean;
}

/** One return can be a machine that was restored from a snapshot of its memory. */
const returnsOfClones = 2;
const maxPast = 8;
/** A restored machine answers one challenge. Of two machines with separate counters, each report outdates that of the other. */
const answersOfClones = 4;

/**
 * Decides from the ids of a newer report whether two machines use one key.
 * @param seen the stored facts of the key; `bootId` is '' before the first report
 * @returns the facts to store. `pastIds`: a JSON array of at most 8 earlier pairs, the newest last. `returns`: one more if the
 *   pair of `next` is in `pastIds`. `answers`: challenges that the same pair answered; 0 after a change of the pair. `cloned`:
 *   true from 2 returns, or from 4 answers of one pair. The first report changes no `pastIds` and no `returns`
 */
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
