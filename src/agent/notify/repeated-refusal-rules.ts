// Decides whether a refusal is about the policy. A worker or loader that accepted the previous generation before, and refuses it
// during the restore with the same text, did not judge the new release: a busy daemon or a read-only directory refuses any.
// A death is never such a refusal, because a process that dies of a policy has judged it. Pure.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import { refusesAllText } from '../../core/status/worker-rules.js';
import type { WorkerLedger } from '../state/ledger.js';
import { workerKey } from './worker-ledger.js';
import { refusingGroupsIn, resultsIn } from './worker-refusal.js';

/** Texts are equal if this prefix is equal, because answers are cut at different places. */
const comparedCharacters = 200;

/** A line that the dynamic loader of a host may print before each answer; two of them fill the compared prefix. */
const loaderLines = /ERROR: ld\.so: [^|\n]*[|\n]?/g;
const paths = /(?:\/[^\s/:;,'"|()[\]{}<>]+)+\/?/g;
const digests = /[0-9a-f]{16,}/g;
const numbers = /\d+/g;

/** @returns the text of a refusal without the parts that differ between generations: paths, digests and numbers */
export function comparableText(text: string): string {
  const own = text.replaceAll(loaderLines, '');
  const plain = own.replaceAll(paths, '/').replaceAll(digests, '0').replaceAll(numbers, '0');
  return plain.slice(0, comparedCharacters);
}

export interface RestoreRefusals {
  /** The refusal of the new generation. */
  readonly forward: WritError;
  /** The results for the restored generation. */
  readonly results: readonly WorkerResult[];
  /** @returns true if the worker had accepted that generation before, and is alive as far as its driver can see */
  readonly hadAccepted: (result: WorkerResult) => boolean;
}

/** @returns keys of the workers that refuse the previous generation with the same text as the new one */
export function repeatedRefusals({ forward, results, hadAccepted }: RestoreRefusals): ReadonlySet<string> {
  const refused = resultsIn(forward).filter(({ state }) => state === 'refused');
  const refusedTexts = new Set(refused.map(({ group, text }) => `${group}\n${comparableText(text)}`));
  const repeated = results.filter(
    (one) =>
      one.state === 'refused' &&
      refusedTexts.has(`${one.group}\n${comparableText(one.text)}`) &&
      hadAccepted(one),
  );
  return new Set(repeated.map(({ group, worker }) => workerKey(group, worker)));
}

/**
 * @param back the failure of a loader for the restored generation
 * @param unloaded groups that had not loaded the previous generation
 * @returns true if the loader of the same group failed with the same code and text for both generations
 */
export function isRepeatedByLoader(
  forward: WritError,
  back: WritError,
  unloaded: readonly string[] = [],
): boolean {
  const [group] = refusingGroupsIn(back);
  return (
    group !== undefined &&
    back.code === forward.code &&
    refusingGroupsIn(forward)[0] === group &&
    !unloaded.includes(group) &&
    comparableText(forward.message) === comparableText(back.message)
  );
}

/** Turns the refusal of a worker that refuses every generation into `unreachable`: it is pending, with a backoff. */
export function asUnreachable(result: WorkerResult): WorkerResult {
  return { ...result, state: 'unreachable', text: `${refusesAllText}${result.text}` };
}

/** @returns true if a worker that refused every generation refuses again with the same text */
export function stillRefusesAll(known: WorkerLedger | undefined, result: WorkerResult): boolean {
  if (known === undefined || !known.text.startsWith(refusesAllText) || result.state !== 'refused')
    return false;
  return comparableText(known.text.slice(refusesAllText.length)) === comparableText(result.text);
}
