// How a worker says that it was reached and is busy, as its user has written it down, and by the conventions of exit codes
// and HTTP. A yes is never "not now"; who reached nobody is not here (unreachable.ts).
import type { NotNowConfig } from '../../core/config/config.js';
import type { BoundedPattern } from '../../platform/bounded-pattern.js';
import { patternOf } from './expectation.js';
import { firstLineOf, type ProgramOutput } from './first-line.js';

export interface NotNowRule {
  /** @param exitCode of a program that did not say yes */
  forExit(exitCode: number, output: ProgramOutput): boolean;
  /** @param answer with a status that does not mean yes */
  forStatus(answer: {
    readonly status: number;
    readonly hasRetryAfter: boolean;
    readonly body: string;
  }): boolean;
  /** @param answer of a worker, other than its yes: its first line counts */
  forText(answer: string): boolean;
}

/** EX_TEMPFAIL of sysexits.h. */
const temporaryFailure = 75;
/** Conflict, locked, too early, too many requests, unavailable. */
const busyStatuses: readonly number[] = [409, 423, 425, 429, 503];

/**
 * @param given all of its conditions must match
 * @param compile makes a pattern of `match`; one that takes too long says nothing
 * @throws WritError CONFIG_INVALID for a `match` that is not a regular expression
 */
export function notNowRule(
  given: NotNowConfig = {},
  compile: (source: string) => Pick<BoundedPattern, 'test'> = (source) => patternOf('notNow.match', source),
): NotNowRule {
  const { exit, status, match } = given;
  const pattern = match === undefined ? undefined : compile(match);
  const says = (output: ProgramOutput): boolean =>
    pattern === undefined || pattern.test(firstLineOf(output)) === 'yes';
  return {
    forExit: (exitCode, output) =>
      exitCode === temporaryFailure ||
      ((exit ?? (pattern && [exitCode]))?.includes(exitCode) === true && says(output)),
    forStatus: ({ status: code, hasRetryAfter, body }) => {
      const output = { stdout: body, stderr: '' };
      if (hasRetryAfter) return true;
      if (status !== undefined) return status.includes(code) && says(output);
      return busyStatuses.includes(code) || (pattern !== undefined && says(output));
    },
    forText: (answer) => pattern !== undefined && says({ stdout: answer, stderr: '' }),
  };
}
