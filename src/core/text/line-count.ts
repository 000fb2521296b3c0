// Counts the added and removed lines between two texts, for people. The texts are compared as multisets, so that a moved line counts
// as the same. Time is linear in the length of the texts, times the logarithm of the number of lines; an exact difference would be
// quadratic. Pure.

export interface LineCounts {
  readonly added: number;
  readonly removed: number;
}

/** @returns undefined if one of them is not text: it has a byte that is zero */
export function countLineChanges(before: Uint8Array, after: Uint8Array): LineCounts | undefined {
  if (before.includes(0) || after.includes(0)) return undefined;
  const [old, now] = [sortedLines(before), sortedLines(after)];
  let [at, same] = [0, 0];
  for (const line of now) {
    while (at < old.length && (old[at] ?? line) < line) at += 1;
    if (old[at] !== line) continue;
    at += 1;
    same += 1;
  }
  return { added: now.length - same, removed: old.length - same };
}

const lineFeed = 10;
const lowBits = 2 ** 21;

/**
 * Each line with its line feed becomes a digest of 53 bits, so that a missing line feed at the end is a difference. Two different
 * lines with one digest would count as the same, which no decision depends on.
 */
function sortedLines(text: Uint8Array): Float64Array {
  const lines = new Float64Array(countLines(text));
  let [index, one, other] = [0, basis, basis];
  for (const byte of text) {
    one = Math.imul(one ^ byte, prime);
    other = Math.imul(other ^ byte, otherPrime) + 1;
    if (byte !== lineFeed) continue;
    lines[index] = numberOf(one, other);
    [index, one, other] = [index + 1, basis, basis];
  }
  if (index < lines.length) lines[index] = numberOf(one, other);
  return lines.sort();
}

/** Constants of FNV-1a and of a second digest. */
const basis = 0x811c9dc5;
const prime = 0x01000193;
const otherPrime = 0x5bd1e995;

function numberOf(one: number, other: number): number {
  return (one >>> 0) * lowBits + (other >>> 11);
}

function countLines(text: Uint8Array): number {
  let count = text.length > 0 && text.at(-1) !== lineFeed ? 1 : 0;
  for (let at = text.indexOf(lineFeed); at !== -1; at = text.indexOf(lineFeed, at + 1)) count += 1;
  return count;
}
