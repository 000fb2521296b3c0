// docs/acceptance.md names tests by file and name. Each of them must exist, or the page makes a promise without a test.
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
  it('has every promise, in order, except those that are not part of Writ', () => {
    const wanted = [...numbered('K', 1, 10), ...numbered('M', 1, 11), ...numbered('R', 1, 16)];
    const daemon = numbered('P', 1, 7).filter((one) => one !== 'P5');
    assert.deepEqual(
      rows.map((row) => row.promise),
      [...wanted, ...daemon],
    );
  });

  for (const row of rows) {
    it(`names tests that exist: ${row.promise}`, () => {
      assert.deepEqual(missingTests(row.shownBy), []);
    });
  }
});
