// The complete text of a problem: its message, followed by the output of a check or a loader. Pure.
import { bothEndsOfLines } from '../text/both-ends.js';
import type { Problem } from './cycle-report.js';

/**
 * @param maxLines number of output lines at most: the first few, and the last ones, where compilers print the error
 * @returns the message and the output, one per line; the message alone if the output is one line that the message ends with
 */
export function problemText(problem: Problem, maxLines: number): string {
  const { output } = problem.facts;
  if (typeof output !== 'string') return problem.message;
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const [only = '', ...more] = lines;
  if (more.length === 0 && problem.message.endsWith(only)) return problem.message;
  return [problem.message, ...bothEndsOfLines(lines, maxLines)].join('\n');
}
