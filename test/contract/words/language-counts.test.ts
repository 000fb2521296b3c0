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
  readLanguageTexts,
} from './language-counts.js';

const recordPath = join(projectRoot, 'test/golden/language-counts.json');

function readRecord(): Readonly<Record<string, FolderCounts>> {
  return JSON.parse(readFileSync(recordPath, 'utf8')) as Readonly<Record<string, FolderCounts>>;
}

describe('the counts of each folder', () => {
  it('are not above the recorded ones', () => {
    const [counted, recorded] = [countLanguage(readLanguageTexts()), readRecord()];
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

describe('#readLanguageTexts', () => {
  it('reads sources, tests, scripts and documents, without the rules and what is generated', () => {
    const { sources, documents } = readLanguageTexts();
    const paths = [...sources, ...documents].map(({ path }) => path);
    for (const path of ['src/cli/run.ts', 'test/kit/cli/run-writ.ts', 'scripts/rename.js', 'docs/fleet.md'])
      assert.ok(paths.includes(path), path);
    assert.deepEqual(
      paths.filter((path) => /node_modules|test\/golden\/|contract\/words\//.test(path)),
      [],
    );
  });
});

describe('#countLanguage', () => {
  it('counts sentences, names, literals and shared exports for each folder', () => {
    const one =
      "// Nobody asks.\nexport const lookAt = 'the door is open';\nexport type Is = 'yes' | undefined;\n";
    const counts = countLanguage({
      sources: [
        { path: 'src/a/b/one.ts', text: one },
        { path: 'src/c/two.ts', text: 'export type Is = 1;\n' },
        { path: 'test/a/b/c/three.ts', text: 'const plain = 1;\n' },
      ],
      documents: [{ path: 'docs/page.md', prose: 'A story.' }],
    });
    assert.deepEqual(counts, {
      docs: { metaphor: 1 },
      'src/a/b': { metaphor: 1, name: 1, pronounSubject: 1, sharedExport: 1, yesLiteral: 1 },
      'src/c': { sharedExport: 1 },
    });
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
