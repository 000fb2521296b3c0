// Evaluates a replay: how long the old policy was not served, what the host recorded, and whether both are as expected. Pure.
import type { Replayed, Sample } from '../stage/outage.js';

/** The expected result of a row. */
export interface Expected {
  /** The response of every worker before the bad release, and again after it. */
  readonly old: string;
  /** The response of every worker at the end: `old` by default. */
  readonly atEnd?: string;
  /** Parts that the events of the host must contain, in any order. */
  readonly happened: readonly string[];
  /**
   * The workers must leave the old policy and recover within this number of seconds; 0 when they must never leave it.
   */
  readonly maxAwaySeconds: number;
}

export interface Found {
  readonly samples: readonly Sample[];
  /** The output of `writ history --json`. */
  readonly history: Readonly<Record<string, unknown>>;
}

export function judgeReplay({ samples, history }: Found, expected: Expected): Replayed {
  const { old, atEnd = old, maxAwaySeconds } = expected;
  const happened = eventsIn(history);
  const away = awaySeconds(samples, old);
  const answers = [...new Set((samples.at(-1)?.answers ?? []).map((one) => one ?? 'nothing'))];
  const serves = answers.join(' and ');
  const missing = expected.happened.filter((part) => !happened.some((one) => one.includes(part)));
  const complaints = [
    ...missing.map((part) => `the host did not record: ${part}`),
    ...(serves === atEnd ? [] : [`the workers serve ${serves}, not ${atEnd}`]),
    ...awayComplaints(away, maxAwaySeconds),
  ];
  return { happened, awaySeconds: away, serves, complaints };
}

function awayComplaints(away: number | undefined, maxSeconds: number): string[] {
  if (maxSeconds === 0) return away === undefined ? [] : [`the old policy was away for ${away} s`];
  if (away === undefined) return ['no worker ever left the old policy, so the fault was not replayed'];
  return away <= maxSeconds ? [] : [`the old policy was away for ${away} s, expected at most ${maxSeconds}`];
}

/**
 * The seconds from the first change of `current` to the last moment at which a worker did not respond with the old
 * policy.
 * @param samples from a moment at which all workers served the old policy
 * @returns undefined when they always did
 */
export function awaySeconds(samples: readonly Sample[], old: string): number | undefined {
  const isOld = ({ answers }: Sample): boolean => answers.every((one) => one === old);
  const lastBad = samples.findLastIndex((one) => !isOld(one));
  if (lastBad === -1) return undefined;
  const firstLink = samples[0]?.current;
  const activated =
    samples.find(({ current }) => current !== firstLink) ?? samples.find((one) => !isOld(one));
  // A worker that has not recovered counts to the end.
  const back = samples[lastBad + 1] ?? samples.at(-1);
  return Math.round(((back?.atMs ?? 0) - (activated?.atMs ?? 0)) / 100) / 10;
}

interface HistoryProblem {
  readonly code: string;
  readonly facts?: { readonly cause?: string };
}

interface HistoryResult {
  readonly outcome: string;
  readonly problems?: readonly HistoryProblem[];
}

/** @returns the outcome of each cycle with its code and cause, oldest first; equal ones in a row once */
export function eventsIn(history: Readonly<Record<string, unknown>>): string[] {
  const entries = (history['entries'] ?? []) as readonly { readonly result: HistoryResult }[];
  const lines = [...entries]
    .reverse()
    .filter(({ result: { outcome } }) => outcome !== 'unchanged')
    .map(({ result }) => eventText(result));
  return lines.filter((line, index) => line !== lines[index - 1]);
}

function eventText({ outcome, problems = [] }: HistoryResult): string {
  const [problem] = problems;
  if (problem === undefined) return outcome;
  const cause = problem.facts?.cause;
  return `${outcome} ${problem.code}${cause === undefined ? '' : ` (${cause})`}`;
}
