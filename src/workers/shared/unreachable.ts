// Decides by the configured `unreachable` whether a program did not reach its daemon: rndc, knotc and most others exit alike for a
// refusal and for a daemon that does not run. Only configured conditions count, because a guess could hide a refusal.
import type { UnreachableConfig } from '../../core/config/config.js';
import type { BoundedPattern } from '../../platform/bounded-pattern.js';
import { firstLineOf, type ProgramOutput } from './first-line.js';

/** @returns whether the program did not reach a daemon */
export type UnreachedRule = (exitCode: number, output: ProgramOutput) => boolean;

/**
 * @param given all its conditions must match; undefined: every program reached its daemon; without `exit` each exit code matches
 * @param patternOf compiles `match`, which applies to the first line of output; a pattern that exceeds its time does not match
 * @returns the test, true if the daemon was not reached; always false for undefined. Only errors of `patternOf` are thrown, at
 *   creation.
 */
export function unreachedRule(
  given: UnreachableConfig | undefined,
  patternOf: (source: string) => Pick<BoundedPattern, 'test'>,
): UnreachedRule {
  if (given === undefined) return () => false;
  const { exit, match } = given;
  const pattern = match === undefined ? undefined : patternOf(match);
  return (exitCode, output) =>
    (exit?.includes(exitCode) ?? true) &&
    (pattern === undefined || pattern.test(firstLineOf(output)) === 'match');
}
