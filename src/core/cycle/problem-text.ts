// A problem in full for people: its message, and under it what a check or a loader printed. Pure.
import { bothEndsOfLines } from '../text/both-ends.js';
import type { Problem } from './cycle-report.js';

/**
 * @param maxLines at most so many lines of output: the first few and the last ones, where compilers put the error
 * @returns the message, then the output, a line each; without output that is one line, and the end of the message already
 */
export function problemText(problem: Problem, maxLines: number): string {
  const { output } = problem.facts;
  if (typeof output !== 'string') return problem.message;
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const [only = '', ...more] = lines;
  if (more.length === 0 && problem.message.endsWith(only)) return problem.message;
  return [problem.message, ...bothEndsOfLines(lines, maxLines)].join('\n');
}
