// How many lines of a text went and came, for people: both texts are taken as bags of lines, so that a line which moved counts
// as the same. Pure. Its time grows with the length of the texts and the logarithm of their lines, whatever they are: an exact
// difference would be quadratic.

export interface LineCounts {
  readonly added: number;
  readonly removed: number;
}

/** @returns undefined where one of them is not a text: it has a byte that is zero */
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
 * A number of 53 bits stands for each line, with its line feed: lines of which only one ends with a line feed differ. Two
 * different lines with one number would be counted as the same, which no decision depends on.
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

/** Of the digests FNV-1a, and a second one beside it. */
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
