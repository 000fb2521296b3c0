// The difference of two texts by lines, for people: removed and added lines with some context. Bounded: texts with too little in
// common have no difference, and a long difference is cut. Pure.

export interface TextDifference {
  /** Each begins with a space, `-`, `+`, or with `@@` where lines were omitted. */
  readonly lines: readonly string[];
  /** Number of lines over the bound; 0 if `lines` is complete. */
  readonly leftOut: number;
}

export interface TextDiffBounds {
  /** Number of lines of the result. */
  readonly maxLines: number;
  /** Characters of a line; a longer line is cut. */
  readonly maxLineCharacters: number;
}

/** Removed and added lines together: time grows with the square of this number. */
const maxEdits = 600;
const contextLines = 3;

type Edit = { readonly kind: ' ' | '-' | '+'; readonly text: string };

/** @returns undefined if the texts have too little in common for a useful difference */
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

/** A missing line feed at the end is a difference. */
function linesOf(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') return lines.slice(0, -1);
  return [...lines.slice(0, -1), `${lines.at(-1)} (no end of line)`];
}

/** @returns the number of common lines at the beginning */
function commonLength(one: readonly string[], other: readonly string[]): number {
  const different = one.findIndex((line, index) => line !== other[index]);
  return different === -1 ? one.length : different;
}

/** Myers' greedy algorithm ("An O(ND) Difference Algorithm", 1986): the smallest number of removed and added lines. */
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

/** @returns true if the step to this diagonal adds a line, false if it removes one */
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
