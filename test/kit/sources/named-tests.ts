// The tests that a document names by file and case, and those of them that do not exist, so that a document cannot name a removed
// test. Reads sources only.
import { existsSync, readFileSync } from 'node:fs';
import { withoutComments } from './source-files.js';

export interface NamedTests {
  readonly file: string;
  readonly names: readonly string[];
}

/** @param cell of a table: `file` "name", "name"; `file` "name" */
export function namedTests(cell: string): readonly NamedTests[] {
  return cell.split('; `').map((one) => ({
    file: /^`?([^`]+)`/.exec(one)?.[1] ?? '',
    names: [...one.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name),
  }));
}

/** @returns the missing tests with their files, and test files without a named case */
export function missingTests(cell: string): string[] {
  return namedTests(cell).flatMap(({ file, names }) => {
    if (!existsSync(file)) return [file];
    if (names.length === 0) return file.startsWith('test/') ? [`${file}: names no case`] : [];
    const source = whatRuns(readFileSync(file, 'utf8'));
    return names.filter((name) => !isTitle(source, name)).map((name) => `${file}: ${name}`);
  });
}

/** A test in a comment, or a skipped one, does not count. */
function whatRuns(source: string): string {
  return withoutComments(source).replace(/\.(?:skip|todo)\([^\n]*/g, '');
}

/** Whether the text is a complete string literal in the source. */
function isTitle(source: string, name: string): boolean {
  return ["'", '"', '`'].some((quote) => {
    const text = quote === "'" ? name.replaceAll("'", "\\'") : name;
    return source.includes(`${quote}${text}${quote}`);
  });
}
