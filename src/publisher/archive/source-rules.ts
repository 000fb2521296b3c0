// Which names of SOURCE a release takes: what --exclude and .writignore leave out, and what is refused because its name says that it
// holds secrets or the history of the source. Pure; reads nothing, and knows nothing of what a file holds.
import { findSecretName } from './secret-names.js';
import { compilePatterns, type SourcePattern } from './source-patterns.js';

/** Patterns to leave out, in the directory that is published. */
export const ignoreFile = '.writignore';

export const maxIgnoreBytes = 65_536;

export interface SourceChoice {
  /** Patterns of paths that are left out. */
  readonly exclude?: readonly string[] | undefined;
  /** Patterns of paths that are taken though their names, or their content, are those of secrets. */
  readonly include?: readonly string[] | undefined;
}

export interface SourceRules {
  /** @returns why a path is not published; undefined: it is */
  judge(
    path: string,
    isDirectory: boolean,
  ): { kind: 'excluded' } | { kind: 'private' | 'ignored-patterns'; why: string } | undefined;
  /** @returns whether the user permits this file although it contains a secret */
  isIncluded(path: string): boolean;
  /** @returns patterns to leave out that matched no path until now, with their places */
  unused(): string[];
}

/**
 * @param ignored text of .writignore, if there is one
 * @throws WritError USAGE for a pattern that could leave out less than its writer meant, or take too long
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
      // Its patterns would leave nothing out, and it would be published as a file.
      if (path.endsWith(`/${ignoreFile}`))
        return { kind: 'ignored-patterns', why: `is not read: only ${ignoreFile} at the top of SOURCE is` };
      const why = findSecretName(path);
      return why === undefined || included.matches(path, isDirectory) ? undefined : { kind: 'private', why };
    },
    isIncluded: (path) => included.matches(path, false),
    unused: () => excluded.unused(),
  };
}

/** @returns the lines of a .writignore that are patterns */
function patternsOf(text: string): SourcePattern[] {
  return text
    .split(/\r?\n/)
    .map((line, index) => ({ text: line.trim(), place: `${ignoreFile}:${index + 1}: ` }))
    .filter((line) => line.text !== '' && !line.text.startsWith('#'));
}
