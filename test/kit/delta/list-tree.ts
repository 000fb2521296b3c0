// Trees that are large enough for deltas: lists of barely compressible names, with single lines changed.
import { seeded } from '../assert/seeded.js';

/** @returns lines of about 25 bytes, which hardly compress */
export function listOf(lines: number, seed = 7): string {
  const random = seeded(seed);
  const name = (): string => random.int(2 ** 31).toString(36) + random.int(2 ** 31).toString(36);
  return Array.from({ length: lines }, () => `${name()} CNAME .\n`).join('');
}

/** @returns the list with the line after the line that contains its middle character */
export function withLine(list: string, line: string): string {
  const middle = list.indexOf('\n', list.length / 2) + 1;
  return `${list.slice(0, middle)}${line}\n${list.slice(middle)}`;
}
