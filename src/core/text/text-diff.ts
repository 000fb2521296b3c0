// The difference of two texts line by line, for people: the lines that went and came, with some around them. Pure and bounded:
// texts that have too little in common are said to be so, and long differences are cut.

export interface TextDifference {
  /** Each begins with a space, `-`, `+`, or `@@` where lines were left out. */
  readonly lines: readonly string[];
  /** Lines beyond the bound; 0 for all of them. */
  readonly leftOut: number;
}

export interface TextDiffBounds {
  /** Of the answer. */
  readonly maxLines: number;
  /** Characters of a line; what is longer is cut. */
  readonly maxLineCharacters: number;
}

/** Lines that went and came, together: the work grows with its square. */
const maxEdits = 600;
const contextLines = 3;

type Edit = { readonly kind: ' ' | '-' | '+'; readonly text: string };

/** @returns undefined where the texts have too little in common for a difference to say anything */
export function diffTexts(before: string, after: string, bounds: TextDiffBounds): TextDifference | undefined {
  const [old, now] = [linesOf(before), linesOf(after)];
  const head = commonLength(old, now);
  const [oldRest, nowRest] = [old.slice(head), now.slice(head)];
  const tail = commonLength(oldRest.toReversed(), nowRest.toReversed());
  const middle = editsOf(oldRest.slice(0, oldRest.length - tail), nowRest.slice(0, nowRest.length - tail));
  if (middle === undefined) return undefined;
  const same = (lines: readonly string[]): Edit[] => lines.map((text) => ({ kind: ' ', text }));
  const edits = [...same(old.slice(0, head)), ...middle, ...same(old.slice(old.length - tail))];
  const shown = withContext(edits).map((line) =>
    line.length > bounds.maxLineCharacters ? `${line.slice(0, bounds.maxLineCharacters)}...` : line,
  );
  const lines = shown.slice(0, bounds.maxLines);
  return { lines, leftOut: shown.length - lines.length };
}

/** A text that does not end its last line differs from one that does. */
function linesOf(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') return lines.slice(0, -1);
  return [...lines.slice(0, -1), `${lines.at(-1)} (no end of line)`];
}

/** @returns how many lines both begin with */
function commonLength(one: readonly string[], other: readonly string[]): number {
  const different = one.findIndex((line, index) => line !== other[index]);
  return different === -1 ? one.length : different;
}

/** Myers' greedy algorithm ("An O(ND) Difference Algorithm", 1986): the fewest lines that went and came. */
function editsOf(old: readonly string[], now: readonly string[]): Edit[] | undefined {
  const furthest = new Map<number, number>([[1, 0]]);
  const trail: Map<number, number>[] = [];
  for (let edits = 0; edits <= Math.min(maxEdits, old.length + now.length); edits += 1) {
    trail.push(new Map(furthest));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = startOn(furthest, diagonal, edits);
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x += 1;
      furthest.set(diagonal, x);
      if (x >= old.length && x - diagonal >= now.length) return walkBack(trail, old, now);
    }
  }
  return undefined;
}

function startOn(furthest: ReadonlyMap<number, number>, diagonal: number, edits: number): number {
  if (isDown(furthest, diagonal, edits)) return furthest.get(diagonal + 1) ?? -1;
  return (furthest.get(diagonal - 1) ?? -1) + 1;
}

function walkBack(
  trail: readonly ReadonlyMap<number, number>[],
  old: readonly string[],
  now: readonly string[],
): Edit[] {
  const found: Edit[] = [];
  let [x, y] = [old.length, now.length];
  for (let edits = trail.length - 1; edits >= 0; edits -= 1) {
    const furthest = trail[edits] ?? new Map<number, number>();
    const diagonal = x - y;
    const start = startOn(furthest, diagonal, edits);
    const isNew = isDown(furthest, diagonal, edits);
    while (x > start && y > start - diagonal) {
      x -= 1;
      y -= 1;
      found.push({ kind: ' ', text: old[x] ?? '' });
    }
    if (edits === 0) break;
    if (isNew) y -= 1;
    else x -= 1;
    found.push(isNew ? { kind: '+', text: now[y] ?? '' } : { kind: '-', text: old[x] ?? '' });
  }
  return found.reverse();
}

/** A line came, rather than went, to get onto this diagonal. */
function isDown(furthest: ReadonlyMap<number, number>, diagonal: number, edits: number): boolean {
  const left = furthest.get(diagonal - 1) ?? -1;
  const right = furthest.get(diagonal + 1) ?? -1;
  return diagonal === -edits || (diagonal !== edits && left < right);
}

function withContext(edits: readonly Edit[]): string[] {
  const near = nearChanges(edits);
  const lines: string[] = [];
  let [oldLine, newLine] = [1, 1];
  for (const [index, { kind, text }] of edits.entries()) {
    if (near.has(index) && !near.has(index - 1)) lines.push(`@@ -${oldLine} +${newLine} @@`);
    if (near.has(index)) lines.push(`${kind}${text}`);
    if (kind !== '+') oldLine += 1;
    if (kind !== '-') newLine += 1;
  }
  return lines;
}

function nearChanges(edits: readonly Edit[]): ReadonlySet<number> {
  const near = new Set<number>();
  for (const [index, { kind }] of edits.entries()) {
    if (kind === ' ') continue;
    for (let at = Math.max(0, index - contextLines); at <= index + contextLines; at += 1) near.add(at);
  }
  return near;
}
