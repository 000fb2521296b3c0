// How a program says that it did not reach its daemon, as its user has written it down: rndc, knotc and nearly all others end
// alike for a daemon that refuses and for one that is down. Only what the user names counts: a guess would talk a no away.
import type { Unreachable } from '../../core/config/config.js';
import type { BoundedPattern } from '../../platform/bounded-pattern.js';

/** True where the program reached nobody. */
export type UnreachedRule = (exitCode: number, output: ProgramOutput) => boolean;

interface ProgramOutput {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * @param given all that it names must hold; left out: every program has reached its daemon
 * @param patternOf of its `match`; a pattern that takes too long says nothing
 */
export function unreachedRule(
  given: Unreachable | undefined,
  patternOf: (source: string) => Pick<BoundedPattern, 'test'>,
): UnreachedRule {
  if (given === undefined) return () => false;
  const { exit, match } = given;
  const pattern = match === undefined ? undefined : patternOf(match);
  return (exitCode, output) =>
    (exit?.includes(exitCode) ?? true) &&
    (pattern === undefined || pattern.test(firstLineOf(output)) === 'yes');
}

/** All that a regular expression takes for one, or `^` would hold in the middle of a line that a policy has written. */
const lineEnd = /[\n\r\u2028\u2029]/;

/**
 * Who reached nobody has read no policy, and says so at once. A compiler that repeats the lines which it refuses does so behind
 * its own words: whoever writes a policy must not choose what `match` looks at. Complaints are on stderr, and progress may be
 * on stdout, with names from the policy in it.
 */
function firstLineOf({ stdout, stderr }: ProgramOutput): string {
  const lines = (text: string): string[] => text.split(lineEnd).filter((line) => /[\p{L}\p{N}]/u.test(line));
  return [...lines(stderr), ...lines(stdout)][0]?.trim() ?? '';
}
