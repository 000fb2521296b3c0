// Documents use the terms of the glossary: no word of the list is in their prose.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readDocuments } from './documents.js';
import { findWords } from './find-words.js';
import { notRewritten } from './not-rewritten.js';
import { proseOfComments, proseOfMarkdown, unreleased } from './prose.js';
import { type Word, wordList } from './word-list.js';

const mend: Word = { pattern: /\bmends\b/g, say: 'repairs' };
const behind: Word = {
  pattern: /\bbehind the\b/g,
  say: 'after',
  except: [{ phrase: /\bbehind the proxy\b/g, reason: 'a place' }],
};

function found(prose: string, ...words: readonly Word[]): readonly string[] {
  return findWords(prose, words).map(({ line, found: text }) => `${line}: ${text}`);
}

describe('prose of documents', () => {
  const documents = readDocuments().map(({ path, prose }) => ({
    path,
    findings: findWords(prose, wordList),
  }));

  it('uses no word of the list', () => {
    const wrong = documents
      .filter(({ path }) => !notRewritten.includes(path))
      .flatMap(({ path, findings }) =>
        findings.map(({ line, found: text, say }) => `${path}:${line} "${text}": ${say}`),
      );
    assert.equal(wrong.length, 0, wrong.join('\n'));
  });

  it('is on the list of pages to rewrite only while it has such a word', () => {
    const dirty = documents.filter(({ findings }) => findings.length > 0).map(({ path }) => path);
    assert.deepEqual(
      notRewritten.filter((path) => !dirty.includes(path)),
      [],
    );
  });

  it('is that of every page, README and unit', () => {
    const paths = documents.map(({ path }) => path);
    for (const path of [
      'README.md',
      'docs/daemons/bind.md',
      'src/core/README.md',
      'packaging/systemd/writ-agent.service',
    ]) {
      assert.ok(paths.includes(path), path);
    }
  });
});

describe('#findWords', () => {
  it('names the line of a word', () => {
    assert.deepEqual(found('one\ntwo mends\n', mend), ['2: mends']);
  });

  it('finds a phrase that runs over the end of a line, in a list too', () => {
    assert.deepEqual(found('- it is behind\n  the start', behind), ['1: behind the']);
  });

  it('leaves a phrase alone that is an exception', () => {
    assert.deepEqual(found('behind the proxy, behind the start', behind), ['1: behind the']);
  });
});

describe('#proseOfMarkdown', () => {
  it('has no code, no comment and no target of a link, and keeps the lines', () => {
    const text = '```sh\nmends\n```\n`mends` [a](mends.md) <!-- mends -->\nmends';
    assert.deepEqual(found(proseOfMarkdown(text), mend), ['5: mends']);
  });

  it('has no name of a test after the file of that test, and keeps every other quotation', () => {
    const text = '`test/a.test.ts` "mends", "mends it"; "mends"\n"mends"';
    assert.deepEqual(found(proseOfMarkdown(text), mend), ['1: mends', '2: mends']);
  });

  it('has no code span that runs over the end of a line', () => {
    assert.deepEqual(found(proseOfMarkdown('a `writ\nmends` b mends'), mend), ['2: mends']);
  });
});

describe('#proseOfComments', () => {
  it('is what follows a hash, and no setting', () => {
    assert.deepEqual(found(proseOfComments('mends=1\n# mends\nA=1 # mends `mends`'), mend), [
      '2: mends',
      '3: mends',
    ]);
  });
});

describe('#unreleased', () => {
  it('ends at the first release', () => {
    assert.equal(unreleased('# C\n## [Unreleased]\nnew\n## [0.1.0]\nold\n'), '## [Unreleased]\nnew');
  });
});

describe('the word list', () => {
  it('gives each exception a reason, and looks for every place', () => {
    for (const { pattern, say, except = [] } of wordList) {
      assert.ok(pattern.global && say.length > 0, String(pattern));
      for (const { phrase, reason } of except) assert.ok(phrase.global && reason.length > 0, String(phrase));
    }
  });
});
