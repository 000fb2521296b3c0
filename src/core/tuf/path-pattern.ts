// The patterns of delegations (specification 4.5): `*` matches any number of characters, `?` matches one, and neither matches a
// slash. All other characters match themselves. A shell glob library would also interpret braces, negations and hidden files, so
// that a delegation would cover other paths than its publisher intended.

/** Bounds the time of a match, which is quadratic in the length of the path. A longer path matches no delegation. */
const maxPathCharacters = 1024;

/**
 * Takes at most time in proportion to pattern x path: after a later star has matched, earlier stars are not retried.
 * @param pattern as `dns-?/*.tar.br`; any length
 * @param path of a target; compared by code points, case-sensitive
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
      // Only the last star is retried: the characters before it have matched at the first possible position.
      star.from += 1;
      read = star.from;
      at = star.after;
    } else {
      return false;
    }
  }
  return pattern.slice(at).every((character) => character === '*');
}
