// How a program says that it did not reach its daemon, as its user has written it down: rndc, knotc and nearly all others end
// alike for a daemon that refuses and for one that is down. Only what the user names counts: a guess would talk a no away.
import type { UnreachableConfig } from '../../core/config/config.js';
import type { BoundedPattern } from '../../platform/bounded-pattern.js';
import { firstLineOf, type ProgramOutput } from './first-line.js';

/** True where the program reached nobody. */
export type UnreachedRule = (exitCode: number, output: ProgramOutput) => boolean;

/**
 * @param given all that it names must hold; left out: every program has reached its daemon
 * @param patternOf of its `match`; a pattern that takes too long says nothing
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
    (pattern === undefined || pattern.test(firstLineOf(output)) === 'yes');
}
