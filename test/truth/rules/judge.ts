// Compares what Writ reports of a host with what its daemon really serves. Pure: facts in, a verdict out; stage/ collects the
// facts. A report that is better than the real state is the worst verdict.

/**
 * `=` agrees, `=(u)` agrees without confirmation, `BETTER` than the real state, `WORSE`: a good release was refused,
 * `-` no such case, `?` the case could not run.
 */
export const verdicts = ['-', '=', '=(u)', 'WORSE', 'BETTER', '?'] as const;
export type Verdict = (typeof verdicts)[number];

/** The state that all commands of Writ report together. */
export type ReportedState = 'confirmed' | 'unconfirmed' | 'trouble' | 'nothing';

/** The report and the real state at one moment. */
export interface Sight {
  /** Whether the daemon can use the last published release. */
  readonly release: 'good' | 'bad';
  /** Whether Writ has refused that release. */
  readonly refused: boolean;
  /** The revision that Writ reports as active. */
  readonly active: string | undefined;
  /** The version that the daemon serves; undefined without a response. */
  readonly served: string | undefined;
  readonly reported: ReportedState;
}

export interface CommandResults {
  /** Exit code of the command that changed the policy, or tried to. */
  readonly exitCode: number | null;
  readonly confirmed: boolean;
  /** Codes of all findings of `writ health`. */
  readonly findings: readonly string[];
}

/** Findings about a missing agent or an earlier refusal, which do not concern the served release. */
const aside = new Set(['NO_AGENT', 'REMEMBERED_REFUSAL']);
const unconfirmed = 'WORKER_UNCONFIRMED';

/** @returns the state that pull, status and health report together */
export function reportedStateOf({ exitCode, confirmed, findings }: CommandResults): ReportedState {
  if (confirmed) return 'confirmed';
  const about = findings.filter((code) => !aside.has(code));
  if (exitCode !== 0 || about.some((code) => code !== unconfirmed)) return 'trouble';
  return about.length > 0 ? 'unconfirmed' : 'nothing';
}

export function judge({ release, refused, active, served, reported }: Sight): Verdict {
  if (release === 'good' && refused) return 'WORSE';
  const agrees = active !== undefined && served === active;
  switch (reported) {
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

/** @returns the verdict on a case with several observations */
export function worstOf(all: readonly Verdict[]): Verdict {
  return verdicts[Math.max(0, ...all.map((one) => verdicts.indexOf(one)))] ?? '-';
}
