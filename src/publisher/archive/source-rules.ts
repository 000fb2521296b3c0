// Decides by names which paths of SOURCE a release contains. --exclude and .writignore leave paths out. Names that usually
// belong to secrets or to the history of the source are refused. Pure; reads no file.
import { findSecretName } from './secret-names.js';
import { compilePatterns, type SourcePattern } from './source-patterns.js';

/** The file with patterns to leave out, in the published directory. */
export const ignoreFile = '.writignore';

export const maxIgnoreBytes = 65_536;

export interface SourceChoice {
  /** Patterns of paths to leave out. */
  readonly exclude?: readonly string[] | undefined;
  /** Patterns of paths to publish although their name or content shows a secret. */
  readonly include?: readonly string[] | undefined;
}

export interface SourceRules {
  /** @returns why a path is not published; undefined where it is */
  judge(
    path: string,
    isDirectory: boolean,
  ): { kind: 'excluded' } | { kind: 'private' | 'ignored-patterns'; why: string } | undefined;
  /** @returns true where the user permits this file although it contains a secret */
  isIncluded(path: string): boolean;
  /** @returns patterns to leave out that have matched no path so far, with their places */
  unused(): string[];
}

/**
 * Combines the flags and .writignore into the rules that decide which paths of SOURCE are published. Reads no file.
 * @param ignored text of .writignore; '' without the file. Empty lines and lines with # are ignored
 * @returns the rules. `judge` returns undefined for a published path, `excluded` for one to leave out, `private` for the name
 *   of a secret, and `ignored-patterns` for a .writignore in a subdirectory; a pattern to leave out wins over `include`
 * @throws WritError USAGE for a pattern that compilePatterns refuses, such as `!a`
 */
export function sourceRules({ exclude = [], include = [] }: SourceChoice, ignored = ''): SourceRules {
  const excluded = compilePatterns([
    ...exclude.map((text): SourcePattern => ({ text, place: '' })),
    ...patternsOf(ignored),
  ]);
  const included = compilePatterns(include.map((text): SourcePattern => ({ text, place: '' })));
  return {
    judge: (path, isDirectory) => {
      if (path === ignoreFile || excluded.matches(path, isDirectory)) return { kind: 'excluded' };
      // Patterns in a subdirectory would have no effect, and the file would be published.
      if (path.endsWith(`/${ignoreFile}`))
        return { kind: 'ignored-patterns', why: `is not read: only ${ignoreFile} at the top of SOURCE is` };
      const why = findSecretName(path);
      return why === undefined || included.matches(path, isDirectory) ? undefined : { kind: 'private', why };
    },
    isIncluded: (path) => included.matches(path, false),
    unused: () => excluded.unused(),
  };
}

/** @returns the patterns of a .writignore, without comments and empty lines */
function patternsOf(text: string): SourcePattern[] {
  return text
    .split(/\r?\n/)
    .map((line, index) => ({ text: line.trim(), place: `${ignoreFile}:${index + 1}: ` }))
    .filter((line) => line.text !== '' && !line.text.startsWith('#'));
}
