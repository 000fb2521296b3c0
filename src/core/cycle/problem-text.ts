// A problem in full for people: its message, and under it what a check or a loader printed. Pure.
import type { Problem } from './cycle-report.js';

/**
 * @param maxLines at most so many lines of output; the rest is counted
 * @returns the message, then the output, a line each
 */
export function problemText(problem: Problem, maxLines: number): string {
  const { output } = problem.facts;
  if (typeof output !== 'string') return problem.message;
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const more = lines.length - maxLines;
  const shown = more > 0 ? [...lines.slice(0, maxLines), `(${more} more lines)`] : lines;
  return [problem.message, ...shown].join('\n');
}
