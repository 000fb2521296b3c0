// docs/acceptance.md names tests by file and name: each of them must be there, or the page promises what nobody shows.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { withoutComments } from '../kit/sources/source-files.js';

const page = readFileSync('docs/acceptance.md', 'utf8');

interface Row {
  readonly promise: string;
  readonly shownBy: string;
}

const rows: readonly Row[] = [...page.matchAll(/^\| ([KMRP]\d+) \| .+? \| (.+) \|$/gm)].map(
  ([, promise = '', shownBy = '']) => ({ promise, shownBy }),
);

/** `file` "name", "name"; `file` "name" */
function references({ shownBy }: Row): { file: string; names: readonly string[] }[] {
  return shownBy.split('; `').map((one) => ({
    file: /^`?([^`]+)`/.exec(one)?.[1] ?? '',
    names: [...one.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name),
  }));
}

function numbered(letter: string, from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => `${letter}${from + index}`);
}

describe('docs/acceptance.md', () => {
  it('has every promise, in order, but those that are no part of Writ', () => {
    const wanted = [...numbered('K', 1, 10), ...numbered('M', 1, 11), ...numbered('R', 1, 16)];
    const daemon = numbered('P', 1, 7).filter((one) => one !== 'P5');
    assert.deepEqual(
      rows.map((row) => row.promise),
      [...wanted, ...daemon],
    );
  });

  for (const row of rows) {
    it(`names what there is: ${row.promise}`, () => {
      for (const { file, names } of references(row)) {
        assert.ok(existsSync(file), `${row.promise}: ${file}`);
        const source = whatRuns(readFileSync(file, 'utf8'));
        assert.ok(names.length > 0 || file.startsWith('bench/'), `${row.promise}: no test of ${file}`);
        const gone = names.filter((name) => !isTitle(source, name));
        assert.deepEqual(gone, [], `${row.promise}: ${file}`);
      }
    });
  }
});

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
