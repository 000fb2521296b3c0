// The patterns of delegations (specification 4.5): `*` is any run of characters, `?` any single one, neither
// crosses a slash, and nothing else means anything. Our own matcher, as shell globs know braces, negations
// and hidden names: a team would be given paths, or refused some, that nobody meant.

/** A pattern is matched in time that grows with the square of the path: no delegation speaks for longer ones. */
const maxPathCharacters = 1024;

/**
 * @param pattern as `dns-?/*.tar.br`; any length
 * @param path of a target; compared by code point, with regard to case
 * Takes time in proportion to pattern x path at worst: a star is never tried again once a later one has matched.
 */
export function matchesPattern(pattern: string, path: string): boolean {
  if (path.length > maxPathCharacters) return false;
  const patternParts = pattern.split('/');
  const pathParts = path.split('/');
  if (patternParts.length !== pathParts.length) return false;
  return pathParts.every((part, index) => matchesPart([...(patternParts[index] ?? '')], [...part]));
}

function matchesPart(pattern: readonly string[], text: readonly string[]): boolean {
  let at = 0;
  let star: { readonly after: number; from: number } | undefined;
  let read = 0;
  while (read < text.length) {
    if (pattern[at] === '*') {
      star = { after: at + 1, from: read };
      at += 1;
    } else if (pattern[at] === '?' || pattern[at] === text[read]) {
      at += 1;
      read += 1;
    } else if (star !== undefined) {
      // Only the last star can be of any help: what stands before it has matched as early as it could.
      star.from += 1;
      read = star.from;
      at = star.after;
    } else {
      return false;
    }
  }
  return pattern.slice(at).every((character) => character === '*');
}
