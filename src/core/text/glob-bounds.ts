// Bounds on a glob. The matcher compiles it to a backtracking regular expression: `(a+)+b` or `*a*a*a*a*a*a*b` on one hostile file
// name would run for hours. Checks the pattern before it is matched. Pure.

/** With four stars the worst name of 255 bytes takes about a second; each further star multiplies that by 60. */
const maxStars = 4;
/** Number of free positions of a match in all segments: each multiplies the time by the length of a name. */
const maxFreePositions = 4;
/** Combinations of the alternatives in `{a,b}` and `(a|b)`: the matcher may try each. */
const maxCombinations = 4096;

/** @returns the problem of a pattern that could take too long, without its subject; undefined if it is bounded */
export function findGlobProblem(glob: string): string | undefined {
  const parts = splitGlob(glob);
  if (parts.some(({ kind }) => kind === 'ambiguous'))
    return 'repeats a group that matches one text in several ways';
  const stars = starsBySegment(parts);
  const most = Math.max(...stars);
  if (most > maxStars) return `has ${most} stars in one segment; at most ${maxStars} are allowed`;
  const globstars = parts.filter(({ kind, text }) => kind === 'star' && text.startsWith('**')).length;
  const free = stars.reduce((sum, count) => sum + Math.max(0, count - 1), globstars);
  if (free > maxFreePositions)
    return `has too many stars: \`**\` and each star after the first of its segment are ${free}; at most ${maxFreePositions} are allowed`;
  if (countCombinations(parts) > maxCombinations)
    return `has more than ${maxCombinations} combinations of alternatives`;
  return undefined;
}

interface GlobPart {
  /** `ambiguous`: the end of a repeated group that can match one text with different numbers of repeats. */
  readonly kind: 'star' | 'slash' | 'open' | 'choice' | 'optional' | 'close' | 'ambiguous' | 'text';
  readonly text: string;
}

/** An escaped character, a class, the beginning of a group, several stars, or one character. */
const tokens = /\\.|\[(?:\\.|[^\]\\])+\]|[*+?@!]?\(|\*+(?!\()|./gsu;

function splitGlob(glob: string): GlobPart[] {
  const parts: GlobPart[] = [];
  const groups: OpenGroup[] = [];
  let lastGroup: string | undefined;
  for (const { 0: text, index } of glob.matchAll(tokens)) {
    const [before, open] = [lastGroup, groups.at(-1)];
    lastGroup = undefined;
    if (text === '{' || /^[*+?@!]?\($/.test(text)) {
      groups.push({ start: index + text.length, isRepeated: /^[*+]/.test(text) });
      parts.push({ kind: 'open', text }, { kind: kindOfPrefix(text), text });
    } else if (open !== undefined && (text === ')' || text === '}')) {
      groups.pop();
      lastGroup = glob.slice(open.start, index);
      parts.push({ kind: open.isRepeated && !isPlain(lastGroup) ? 'ambiguous' : 'close', text });
    } else {
      parts.push({ kind: kindOf(text, { isInGroup: open !== undefined, before }), text });
    }
  }
  return parts;
}

interface OpenGroup {
  /** Index of its content. */
  readonly start: number;
  readonly isRepeated: boolean;
}

/** `*(`, `+(` and `!(` match any length, as a star does; a group with `?(` is optional. */
function kindOfPrefix(text: string): GlobPart['kind'] {
  if (/^[*+!]/.test(text)) return 'star';
  return text === '?(' ? 'optional' : 'text';
}

/** @param text a part that does not begin or end a group; `before` is the content of a group that ends directly before it */
function kindOf(
  text: string,
  { isInGroup, before }: { readonly isInGroup: boolean; readonly before: string | undefined },
): GlobPart['kind'] {
  if (text.startsWith('*')) return 'star';
  if (text === '+' && before !== undefined) return isPlain(before) ? 'star' : 'ambiguous';
  // The matcher copies it to the regular expression there.
  if (text === '+' && isInGroup) return 'star';
  if (text === '?' && before !== undefined) return 'optional';
  if (text === '/') return 'slash';
  return isInGroup && (text === ',' || text === '|') ? 'choice' : 'text';
}

/**
 * @returns true for one class, or for plain alternatives with different first characters: a text has at most one division into
 *   repeats of them
 */
function isPlain(content: string): boolean {
  if (/^\[[^\]]+\]$/.test(content)) return true;
  if (/[*+?(){}[\]]/.test(content)) return false;
  const alternatives = content.split(/[|,]/);
  const firsts = new Set(alternatives.map((one) => one.charAt(0)));
  return !firsts.has('') && firsts.size === alternatives.length;
}

function starsBySegment(parts: readonly GlobPart[]): number[] {
  const stars = [0];
  for (const { kind } of parts) {
    if (kind === 'slash') stars.push(0);
    else if (kind === 'star') stars.push((stars.pop() ?? 0) + 1);
  }
  return stars;
}

/** Alternatives in a group are added, and groups are multiplied; an optional part doubles the number. */
function countCombinations(parts: readonly GlobPart[]): number {
  const open: { sum: number; product: number }[] = [{ sum: 0, product: 1 }];
  for (const { kind } of parts) {
    const group = open.at(-1) ?? { sum: 0, product: 1 };
    if (kind === 'open') open.push({ sum: 0, product: 1 });
    else if (kind === 'optional') group.product *= 2;
    else if (kind === 'choice') Object.assign(group, { sum: group.sum + group.product, product: 1 });
    else if (kind === 'close' && open.length > 1) {
      open.pop();
      const outer = open.at(-1);
      if (outer !== undefined) outer.product *= group.sum + group.product;
    }
  }
  // The matcher takes a group without an end as text, which the length of the pattern bounds.
  return open.reduce((product, group) => product * (group.sum + group.product), 1);
}
