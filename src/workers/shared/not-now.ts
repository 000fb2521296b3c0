// Decides whether an answer is a deferral: the worker was reached and is busy. Applies the configured `notNow` and the conventions of
// exit codes and HTTP. A success is never a deferral. unreachable.ts decides for daemons that were not reached.
import type { NotNowConfig } from '../../core/config/config.js';
import type { BoundedPattern } from '../../platform/bounded-pattern.js';
import { patternOf } from './expectation.js';
import { firstLineOf, type ProgramOutput } from './first-line.js';

export interface DeferralRule {
  /** @param exitCode of a program that did not succeed */
  forExit(exitCode: number, output: ProgramOutput): boolean;
  /** @param answer with a status that does not mean success */
  forStatus(answer: {
    readonly status: number;
    readonly hasRetryAfter: boolean;
    readonly body: string;
  }): boolean;
  /** @param answer of a worker that does not mean success; the first line is examined */
  forText(answer: string): boolean;
}

/** EX_TEMPFAIL of sysexits.h. */
const temporaryFailure = 75;
/** HTTP statuses: conflict, locked, too early, too many requests, unavailable. */
const busyStatuses: readonly number[] = [409, 423, 425, 429, 503];

/**
 * @param given all of its conditions must match; undefined or empty: only the conventions apply
 * @param compile compiles `match`; a pattern that exceeds its time does not match
 * @returns tests that are true for a deferral. `forExit`: exit code 75, or what `exit`, `match` or both name. `forStatus`:
 *   Retry-After, or the configured statuses, else 409, 423, 425, 429, 503 or a `match`. `forText`: only a `match` on the first
 *   line.
 * @throws WritError CONFIG_INVALID for a `match` that is not a regular expression; the tests throw nothing
 */
export function deferralRule(
  given: NotNowConfig = {},
  compile: (source: string) => Pick<BoundedPattern, 'test'> = (source) => patternOf('notNow.match', source),
): DeferralRule {
  const { exit, status, match } = given;
  const pattern = match === undefined ? undefined : compile(match);
  const matches = (output: ProgramOutput): boolean =>
    pattern === undefined || pattern.test(firstLineOf(output)) === 'match';
  return {
    forExit: (exitCode, output) =>
      exitCode === temporaryFailure ||
      ((exit ?? (pattern && [exitCode]))?.includes(exitCode) === true && matches(output)),
    forStatus: ({ status: code, hasRetryAfter, body }) => {
      const output = { stdout: body, stderr: '' };
      if (hasRetryAfter) return true;
      if (status !== undefined) return status.includes(code) && matches(output);
      return busyStatuses.includes(code) || (pattern !== undefined && matches(output));
    },
    forText: (answer) => pattern !== undefined && matches({ stdout: answer, stderr: '' }),
  };
}
