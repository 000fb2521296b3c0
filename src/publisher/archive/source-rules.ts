// Which names of SOURCE a release takes: what --exclude and .writignore leave out, and what is refused because its name says that it
// holds secrets or the history of the source. Pure; reads nothing, and knows nothing of what a file holds.
import picomatch from '#picomatch';
import { WritError } from '../../core/errors.js';

/** Patterns to leave out, in the directory that is published. */
export const ignoreFile = '.writignore';

export const maxIgnoreBytes = 65_536;
const maxPatterns = 1000;
const maxPatternCharacters = 1000;

/** Where versions are kept, and secrets: signed and served, they would be everybody's. */
const privateNames: Readonly<Record<string, string>> = {
  '.git': 'is where git keeps its history',
  '.hg': 'is where Mercurial keeps its history',
  '.svn': 'is where Subversion keeps its history',
  '{.env,.env.*,.envrc}': 'looks like a file of secrets',
  '{.netrc,.pgpass,.npmrc,.pypirc,.git-credentials}': 'looks like a file of passwords',
  '{.ssh,.gnupg,.aws}': 'looks like a directory of secret keys',
  '{id_rsa,id_dsa,id_ecdsa,id_ed25519}': 'looks like a secret key',
};

export interface SourceChoice {
  /** Patterns of paths that are left out. */
  readonly exclude?: readonly string[] | undefined;
  /** Patterns of paths that are taken though their names are those of secrets. */
  readonly include?: readonly string[] | undefined;
}

export interface SourceRules {
  /** @returns why a path is not published; undefined: it is */
  judge(
    path: string,
    isDirectory: boolean,
  ): { kind: 'excluded' } | { kind: 'private'; why: string } | undefined;
}

/**
 * @param ignored text of .writignore, if there is one
 * @throws WritError USAGE for a pattern that nobody can take
 */
export function sourceRules({ exclude = [], include = [] }: SourceChoice, ignored = ''): SourceRules {
  const [isTyped, isIgnored] = [anyOf(exclude), anyOf(patternsOf(ignored), `${ignoreFile}: `)];
  const isExcluded: Matcher = (path, isDirectory) =>
    isTyped(path, isDirectory) || isIgnored(path, isDirectory);
  const isIncluded = anyOf(include);
  const secrets = Object.entries(privateNames).map(([glob, why]) => ({ is: anyOf([glob]), why }));
  return {
    judge: (path, isDirectory) => {
      if (path === ignoreFile || isExcluded(path, isDirectory)) return { kind: 'excluded' };
      const secret = secrets.find(({ is }) => is(path, isDirectory));
      if (secret === undefined || isIncluded(path, isDirectory)) return undefined;
      return { kind: 'private', why: secret.why };
    },
  };
}

/** @returns the lines of a .writignore that are patterns */
function patternsOf(text: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('#'));
}

type Matcher = (path: string, isDirectory: boolean) => boolean;

/** @param place where they are, said before what is wrong with one; none for what was typed */
function anyOf(patterns: readonly string[], place = ''): Matcher {
  if (patterns.length > maxPatterns)
    throw refused(`${place}${patterns.length} patterns`, `at most ${maxPatterns}`);
  const matchers = patterns.map((pattern) => matcherOf(pattern, place));
  return (path, isDirectory) => matchers.some((matches) => matches(path, isDirectory));
}

/** As in a .gitignore: without a slash a name anywhere, with one a path from the top; a slash at the end is a directory alone. */
function matcherOf(pattern: string, place: string): Matcher {
  if (pattern.length > maxPatternCharacters)
    throw refused(`${place}a pattern`, `of at most ${maxPatternCharacters} characters`);
  // Taken for a name it would leave nothing out, and what was to be kept back would be signed.
  if (pattern.startsWith('!'))
    throw refused(`${place}${pattern}`, 'only patterns to leave out, none with "!"');
  const bare = pattern.replace(/^\//, '').replace(/\/+$/, '');
  if (bare === '') throw refused(`${place}"${pattern}"`, 'a pattern with a name in it');
  const isAnchored = pattern.startsWith('/') || bare.includes('/');
  const matches = picomatch(isAnchored ? bare : `**/${bare}`, { dot: true, strictBrackets: false });
  const onlyDirectories = pattern.endsWith('/');
  return (path, isDirectory) => (isDirectory || !onlyDirectories) && matches(path);
}

function refused(what: string, expected: string): WritError {
  return new WritError('USAGE', `${what} is not a usable pattern`, {
    facts: { expected },
    hint: 'Patterns are as in a .gitignore, without "!": *.bak, /build/, docs/**.',
  });
}
