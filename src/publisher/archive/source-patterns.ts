// Path patterns as in a .gitignore: the allowed patterns of a .writignore line or a flag, and the paths that they match.
// Refuses patterns that would leave nothing out, or would take too long. Pure; records for each pattern whether it matched.
import picomatch from '#picomatch';
import { WritError } from '../../core/errors.js';
import { findGlobProblem } from '../../core/text/glob-bounds.js';

const maxPatterns = 1000;
const maxPatternCharacters = 1000;

export interface SourcePattern {
  readonly text: string;
  /** The place of the pattern, as `.writignore:3: `; empty for a flag. */
  readonly place: string;
}

export interface SourcePatterns {
  matches(path: string, isDirectory: boolean): boolean;
  /** @returns the patterns that have matched no path so far, with their places */
  unused(): string[];
}

/**
 * Compiles path patterns as in a .gitignore, without negation. `*.bak` matches at any depth, `/a/b` only from the top.
 * @returns the patterns together: `matches` is true if one of them matches the path, and never true for an empty list; `unused`
 *   returns patterns without a match so far, in the given order, as `.writignore:3: *.bak`
 * @throws WritError USAGE for more than 1000 patterns; and for a pattern that is too long or slow, begins with `!`, has no
 *   name, has `..`, invisible characters or unpaired brackets
 */
export function compilePatterns(patterns: readonly SourcePattern[]): SourcePatterns {
  const [first] = patterns;
  if (first !== undefined && patterns.length > maxPatterns)
    throw refused({ place: first.place, text: `${patterns.length} patterns` }, `at most ${maxPatterns}`);
  const matchers = patterns.map((pattern) => ({ pattern, matches: matcherOf(pattern), isUsed: false }));
  return {
    matches: (path, isDirectory) => {
      let isMatched = false;
      for (const matcher of matchers) {
        // Patterns without a match are tried on each path, because a pattern that another one covers would otherwise count
        // as unused.
        if ((isMatched && matcher.isUsed) || !matcher.matches(path, isDirectory)) continue;
        isMatched = true;
        matcher.isUsed = true;
      }
      return isMatched;
    },
    unused: () =>
      matchers.filter(({ isUsed }) => !isUsed).map(({ pattern: { place, text } }) => `${place}${text}`),
  };
}

/**
 * A pattern without a slash matches a name at any depth, one with a slash a path from the top. A slash at the end restricts
 * it to directories.
 */
function matcherOf(pattern: SourcePattern): (path: string, isDirectory: boolean) => boolean {
  const { text } = pattern;
  if (text.length > maxPatternCharacters)
    throw refused({ ...pattern, text: 'a pattern' }, `of at most ${maxPatternCharacters} characters`);
  const bare = text.replace(/^\//, '').replace(/\/+$/, '');
  const expected = findPatternProblem(text, bare);
  if (expected !== undefined) throw refused({ ...pattern, text: bare === '' ? `"${text}"` : text }, expected);
  const isAnchored = text.startsWith('/') || bare.includes('/');
  const glob = isAnchored ? bare : `**/${bare}`;
  const problem = findGlobProblem(glob);
  if (problem !== undefined) throw refused(pattern, `a pattern of bounded time; this one ${problem}`);
  const matches = picomatch(glob, { dot: true, strictBrackets: false });
  const onlyDirectories = text.endsWith('/');
  return (path, isDirectory) => (isDirectory || !onlyDirectories) && matches(path);
}

/**
 * @returns the expectation that a pattern violates which would leave nothing out against its author's intention; undefined
 *   for a usable pattern
 */
function findPatternProblem(text: string, bare: string): string | undefined {
  if (text.startsWith('!')) return 'only patterns to leave out, none with "!"';
  if (bare === '') return 'a pattern with a name in it';
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]/u.test(text)) return 'no control characters and no invisible ones';
  if (bare.split('/').some((name) => name === '..' || name === '.'))
    return 'paths below SOURCE, without ".."';
  return hasBalancedBrackets(bare)
    ? undefined
    : 'brackets in pairs; a backslash before one that is part of a name';
}

function hasBalancedBrackets(text: string): boolean {
  const plain = text.replace(/\\./gsu, '').replace(/\[[^\]]+\]/g, '');
  const open: string[] = [];
  for (const character of plain.match(/[[\](){}]/g) ?? []) {
    const closed = { ')': '(', '}': '{', ']': '[' }[character];
    if (closed === undefined) open.push(character);
    else if (open.pop() !== closed) return false;
  }
  return open.length === 0;
}

function refused({ place, text }: SourcePattern, expected: string): WritError {
  const shown = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
  return new WritError('USAGE', `${place}${shown} is not a usable pattern`, {
    facts: { expected, ...(place === '' ? {} : { place: place.replace(/: $/, '') }) },
    hint: 'Patterns are as in a .gitignore, without "!": *.bak, /build/, docs/**.',
  });
}
