// Holds what Writ says of a host to what its daemon really serves. Pure: facts in, a verdict out; who asks both is
// stage's. A word that is better than the truth is the worst that can be found.

/** `=` agrees, `=(u)` agrees but proves nothing, `BETTER` than the truth, `WORSE`: a good release was refused, `-` no such case, `?` it could not be played. */
export const verdicts = ['-', '=', '=(u)', 'WORSE', 'BETTER', '?'] as const;
export type Verdict = (typeof verdicts)[number];

/** What Writ says, all commands together. */
export type Word = 'confirmed' | 'unconfirmed' | 'trouble' | 'nothing';

/** Both sides at one moment. */
export interface Sight {
  /** Whether the daemon can use what was published last. */
  readonly release: 'good' | 'bad';
  /** Writ has refused that release. */
  readonly refused: boolean;
  /** Revision that Writ says is active. */
  readonly active: string | undefined;
  /** What the daemon itself serves; undefined where it does not answer. */
  readonly served: string | undefined;
  readonly word: Word;
}

export interface Said {
  /** Exit code of the command that moved, or tried to. */
  readonly exitCode: number | null;
  readonly confirmed: boolean;
  /** Codes of all that `writ health` has found. */
  readonly findings: readonly string[];
}

/** That nobody runs an agent, and that an older release was refused, is no word about what is served now. */
const aside = new Set(['NO_AGENT', 'REMEMBERED_REFUSAL']);
const unconfirmed = 'WORKER_UNCONFIRMED';

/** @returns the one word that a reader of pull, status and health takes from them */
export function wordOf({ exitCode, confirmed, findings }: Said): Word {
  if (confirmed) return 'confirmed';
  const about = findings.filter((code) => !aside.has(code));
  if (exitCode !== 0 || about.some((code) => code !== unconfirmed)) return 'trouble';
  return about.length > 0 ? 'unconfirmed' : 'nothing';
}

export function judge({ release, refused, active, served, word }: Sight): Verdict {
  if (release === 'good' && refused) return 'WORSE';
  const agrees = active !== undefined && served === active;
  switch (word) {
    case 'confirmed':
      return agrees ? '=' : 'BETTER';
    case 'unconfirmed':
      return '=(u)';
    case 'trouble':
      return agrees ? '=(u)' : '=';
    case 'nothing':
      return agrees ? '=(u)' : 'BETTER';
  }
}

/** @returns the verdict on a case that was looked at more than once */
export function worstOf(all: readonly Verdict[]): Verdict {
  return verdicts[Math.max(0, ...all.map((one) => verdicts.indexOf(one)))] ?? '-';
}
