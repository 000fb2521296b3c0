// Whether a refusal is about the policy at all. A worker or a loader that refuses, with the same text, what it had taken
// before has not judged the new release: a busy daemon or a read-only directory refuses everything. Pure.
// A death is no such refusal, because a process that dies of a policy has judged it.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import { refusesAllText } from '../../core/status/worker-rules.js';
import type { WorkerLedger } from '../state/ledger.js';
import { groupsIn, resultsIn } from './refusal.js';
import { workerKey } from './worker-ledger.js';

/** Where two texts agree that far, they are one: answers are cut at different places. */
const comparedCharacters = 200;

/** The dynamic loader of a host says this before each answer; two such lines are as long as what is compared. */
const loaderLines = /ERROR: ld\.so: [^|\n]*[|\n]?/g;
const paths = /(?:\/[^\s/:;,'"|()[\]{}<>]+)+\/?/g;
const digests = /[0-9a-f]{16,}/g;
const numbers = /\d+/g;

/** @returns a refusal's text without what differs between two generations: paths and numbers */
export function comparableText(text: string): string {
  const own = text.replaceAll(loaderLines, '');
  const plain = own.replaceAll(paths, '/').replaceAll(digests, '0').replaceAll(numbers, '0');
  return plain.slice(0, comparedCharacters);
}

export interface RefusalBack {
  /** The refusal of the new generation. */
  readonly forward: WritError;
  /** What was said to the generation that is active again. */
  readonly results: readonly WorkerResult[];
  /** Says whether a worker had taken that generation before, and whether it lives as far as its driver sees. */
  readonly hadAccepted: (result: WorkerResult) => boolean;
}

/** @returns keys of the workers that refuse the previous generation with the text of the refusal of the new one */
export function repeatedRefusals({ forward, results, hadAccepted }: RefusalBack): ReadonlySet<string> {
  const refused = resultsIn(forward).filter(({ state }) => state === 'refused');
  const said = new Set(refused.map(({ group, text }) => `${group}\n${comparableText(text)}`));
  const repeated = results.filter(
    (one) =>
      one.state === 'refused' && said.has(`${one.group}\n${comparableText(one.text)}`) && hadAccepted(one),
  );
  return new Set(repeated.map(({ group, worker }) => workerKey(group, worker)));
}

/** @param unloaded groups that had not loaded the previous generation. @returns true where both ends of a loader are one */
export function isRepeatedByLoader(
  forward: WritError,
  back: WritError,
  unloaded: readonly string[] = [],
): boolean {
  const [group] = groupsIn(back);
  return (
    group !== undefined &&
    back.code === forward.code &&
    groupsIn(forward)[0] === group &&
    !unloaded.includes(group) &&
    comparableText(forward.message) === comparableText(back.message)
  );
}

/** A worker that refuses everything counts as not reached: it stays pending, and is asked again at growing intervals. */
export function asNotReached(result: WorkerResult): WorkerResult {
  return { ...result, state: 'unreachable', text: `${refusesAllText}${result.text}` };
}

/** @returns true where a worker that refused everything does so still */
export function stillRefusesAll(known: WorkerLedger | undefined, result: WorkerResult): boolean {
  if (known === undefined || !known.text.startsWith(refusesAllText) || result.state !== 'refused')
    return false;
  return comparableText(known.text.slice(refusesAllText.length)) === comparableText(result.text);
}
