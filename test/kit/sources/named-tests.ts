// The tests that a document names, by file and case, and which of them are not there: a page that says what shows its
// promises must not outlive what shows them. Reads sources only; runs nothing.
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

/** @returns what is not there, each with its file; a test file of which no case is named counts too */
export function missingTests(cell: string): string[] {
  return namedTests(cell).flatMap(({ file, names }) => {
    if (!existsSync(file)) return [file];
    if (names.length === 0) return file.startsWith('test/') ? [`${file}: names no case`] : [];
    const source = whatRuns(readFileSync(file, 'utf8'));
    return names.filter((name) => !isTitle(source, name)).map((name) => `${file}: ${name}`);
  });
}

/** A test that is only spoken of, or left out for good, shows nothing. */
function whatRuns(source: string): string {
  return withoutComments(source).replace(/\.(?:skip|todo)\([^\n]*/g, '');
}

/** The whole text of a string in the source, in whatever quotes. */
function isTitle(source: string, name: string): boolean {
  return ["'", '"', '`'].some((quote) => {
    const text = quote === "'" ? name.replaceAll("'", "\\'") : name;
    return source.includes(`${quote}${text}${quote}`);
  });
}
