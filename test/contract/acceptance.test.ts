// docs/acceptance.md names tests by file and name: each of them must be there, or the page promises what nobody shows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { missingTests } from '../kit/sources/named-tests.js';

const page = readFileSync('docs/acceptance.md', 'utf8');

interface Row {
  readonly promise: string;
  readonly shownBy: string;
}

const rows: readonly Row[] = [...page.matchAll(/^\| ([KMRP]\d+) \| .+? \| (.+) \|$/gm)].map(
  ([, promise = '', shownBy = '']) => ({ promise, shownBy }),
);

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
      assert.deepEqual(missingTests(row.shownBy), []);
    });
  }
});
