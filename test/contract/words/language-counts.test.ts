// What breaks a rule of language is counted for each folder, and each count may only fall: test/golden/language-counts.json.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectRoot } from '../../kit/sources/source-files.js';
import {
  breaksNameRule,
  countLanguage,
  countSentences,
  countSharedExports,
  type FolderCounts,
} from './language-counts.js';

const recordPath = join(projectRoot, 'test/golden/language-counts.json');

function readRecord(): Readonly<Record<string, FolderCounts>> {
  return JSON.parse(readFileSync(recordPath, 'utf8')) as Readonly<Record<string, FolderCounts>>;
}

describe('the counts of each folder', () => {
  it('are not above the recorded ones', () => {
    const [counted, recorded] = [countLanguage(), readRecord()];
    const risen = Object.entries(counted).flatMap(([folder, counts]) =>
      Object.entries(counts)
        .map(([kind, count]) => ({ folder, kind, count, most: recorded[folder]?.[kind] ?? 0 }))
        .filter(({ count, most }) => count > most)
        .map(({ folder, kind, count, most }) => `${folder} ${kind}: ${count}, recorded are ${most}`),
    );
    assert.deepEqual(risen, []);
    // Only after the comparison, so that no update raises a count.
    if (process.env['UPDATE_GOLDEN'] === '1')
      writeFileSync(recordPath, `${JSON.stringify(counted, undefined, 2)}\n`);
  });
});

describe('#countSentences', () => {
  const counted = (prose: string, kind: string): number | undefined =>
    new Map(countSentences(prose)).get(kind);

  it('counts a pronoun that is the subject of a sentence', () => {
    assert.equal(counted('Nobody asks. Who asks, waits: what is read stays', 'pronounSubject'), 3);
    assert.equal(counted('The host that waits is the one host who did not answer', 'pronounSubject'), 0);
  });

  it('counts a metaphor, also over the end of a line, and leaves its exceptions out', () => {
    assert.equal(counted('A door of\nthe story tells of it in the same\nway', 'metaphor'), 3);
  });
});

describe('#breaksNameRule', () => {
  it('compares the parts of a name', () => {
    assert.deepEqual(
      ['lookAtBakes', 'MAX_LOOKS', 'isTold', 'password', 'lookup', 'wordCount'].map(breaksNameRule),
      [true, true, true, false, false, true],
    );
  });
});

describe('#countSharedExports', () => {
  it('counts a name that two files of src export, and no `command`', () => {
    const text = 'export const command = 1;\nexport interface Offer {}\nexport function one() {}\n';
    const counts = countSharedExports([
      { path: 'src/a.ts', text },
      { path: 'src/b.ts', text: text.replace('one', 'two') },
      { path: 'test/c.ts', text },
    ]);
    assert.deepEqual(
      [...counts],
      [
        ['src/a.ts', 1],
        ['src/b.ts', 1],
      ],
    );
  });
});
