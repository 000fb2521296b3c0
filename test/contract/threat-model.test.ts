// docs/threat-model.md names a test for each attack that Writ prevents. Each of these tests must exist.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { missingTests } from '../kit/sources/named-tests.js';

const page = readFileSync('docs/threat-model.md', 'utf8');
const rows = [...page.matchAll(/^\| ([A-Z]\d+) \| .+? \| (`.+) \|$/gm)];

/** The letter of each attacker, and the title of its chapter. */
const attackers: Readonly<Record<string, string>> = {
  N: 'The network',
  M: 'A mirror',
  V: 'The server, and its clients',
  O: 'The online keys',
  T: 'A team key, and the offline keys',
  L: 'A local user of a host',
  C: 'A check, and the policy that it judges',
  W: 'A worker',
  P: "The operator's mistake",
};

describe('docs/threat-model.md', () => {
  it('has a chapter for every attacker, with its rows in order', () => {
    const chapters = page.split(/^## /m).slice(2);
    assert.deepEqual(
      chapters.map((text) => text.split('\n')[0]),
      Object.values(attackers),
    );
    for (const [index, letter] of Object.keys(attackers).entries()) {
      const ids = [...(chapters[index] ?? '').matchAll(/^\| ([A-Z]\d+) \|/gm)].map(([, id]) => id);
      assert.ok(ids.length >= 4, letter);
      assert.deepEqual(
        ids,
        ids.map((_, place) => `${letter}${place + 1}`),
      );
    }
  });

  it('names a test in every row', () => {
    assert.equal(rows.length, [...page.matchAll(/^\| [A-Z]\d+ \|/gm)].length);
  });

  for (const [, id, shownBy = ''] of rows) {
    it(`names tests that exist: ${id}`, () => assert.deepEqual(missingTests(shownBy), []));
  }
});

describe('a page that names tests', () => {
  const other = '`test/contract/documents.test.ts`';
  it('must name an existing file, a whole title, and at least one title', () => {
    assert.deepEqual(missingTests(`${other} "draws the machine that the table is"`), []);
    assert.deepEqual(missingTests('`test/none.test.ts` "a"'), ['test/none.test.ts']);
    const cut = missingTests(`${other} "draws the machine that the table"`);
    assert.deepEqual(cut, ['test/contract/documents.test.ts: draws the machine that the table']);
    assert.deepEqual(missingTests(other), ['test/contract/documents.test.ts: names no case']);
  });
});
