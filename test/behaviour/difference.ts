// The differences between two recordings of one scenario, byte for byte, in a few lines. Decides only whether they are equal.
import type { Recording } from './recording.js';

const maxDifferences = 5;
const maxLines = 6;

/** @returns lines for people; empty when all recordings are equal */
export function differencesOf(a: readonly Recording[], b: readonly Recording[]): readonly string[] {
  const found: string[][] = [];
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) {
    const [one, other] = [a[index], b[index]];
    if (one?.title === other?.title && one?.text === other?.text) continue;
    found.push([`  #${index + 1} ${one?.title ?? '(nothing)'}`, ...linesOf(one, other)]);
    // Everything after a missing recording is shifted, so its differences mean nothing.
    if (one?.title !== other?.title) break;
  }
  const more = found.length - maxDifferences;
  return [...found.slice(0, maxDifferences).flat(), ...(more > 0 ? [`  and ${more} more`] : [])];
}

function linesOf(one: Recording | undefined, other: Recording | undefined): string[] {
  if (one?.title !== other?.title) return [`    B: ${other?.title ?? '(nothing)'}`];
  const [was, is] = [one?.text.split('\n') ?? [], other?.text.split('\n') ?? []];
  const start = was.findIndex((line, index) => line !== is[index]);
  const first = start < 0 ? was.length : start;
  let same = 0;
  while (same < Math.min(was.length, is.length) - first && was.at(-1 - same) === is.at(-1 - same)) same += 1;
  return [
    `    line ${first + 1}`,
    ...cut('A', was.slice(first, was.length - same), is[first]),
    ...cut('B', is.slice(first, is.length - same), was[first]),
  ];
}

function cut(side: string, lines: readonly string[], against: string | undefined): string[] {
  const shown = lines
    .slice(0, maxLines)
    .map((line, index) => `    ${side}: ${around(line, index === 0 ? against : undefined)}`);
  return lines.length > maxLines
    ? [...shown, `    ${side}: ... ${lines.length - maxLines} lines more`]
    : shown;
}

/** The part of a long line around its first difference. */
function around(line: string, against: string | undefined): string {
  const width = 240;
  if (line.length <= width) return line;
  let from = 0;
  while (against !== undefined && from < line.length && line[from] === against[from]) from += 1;
  const begin = Math.max(0, from - 80);
  return `${begin > 0 ? '...' : ''}${line.slice(begin, begin + width)}...`;
}
