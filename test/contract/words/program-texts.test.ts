// The program speaks in the terms of the glossary: no word of the list is in a text that it prints.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findWords } from './find-words.js';
import { commentsOfSource, proseOfSource, readComments, readProgramTexts } from './program-texts.js';
import { wordList } from './word-list.js';

/** Texts in which a word of the list is right, each with its reason. */
const allowed: readonly { readonly text: string; readonly reason: string }[] = [
  { text: 'behind the newest signature', reason: 'a clock is behind another one' },
  { text: 'behind a signature of', reason: 'a clock is behind another one' },
  { text: 'ignores a pause, holds and', reason: 'the noun: releases that a rollback holds' },
  { text: 'end a pause, all holds and a block', reason: 'the noun: releases that a rollback holds' },
  { text: 'Releases that a person holds.', reason: 'the one meaning of the word' },
];

describe('the texts of the program', () => {
  const texts = ['src', 'bench', 'scripts'].flatMap(readProgramTexts);

  it('use no word of the list', () => {
    const wrong = texts
      .filter(({ prose }) => !allowed.some(({ text }) => prose.includes(text)))
      .flatMap(({ path, prose }) =>
        findWords(prose, wordList).map(({ found, say }) => `${path} "${found}" in "${prose}": ${say}`),
      );
    assert.equal(wrong.length, 0, wrong.join('\n'));
  });

  it('are found, those of the error codes and of the commands too', () => {
    assert.ok(texts.length > 1500, String(texts.length));
    for (const prose of [
      'The agent does not answer on its socket.',
      'withdraw a bad release: its channel gets an older one',
    ])
      assert.ok(
        texts.some((text) => text.prose === prose),
        prose,
      );
  });

  it('are allowed a word only while they have it', () => {
    const unused = allowed.filter(({ text }) => !texts.some(({ prose }) => prose.includes(text)));
    assert.deepEqual(unused, []);
  });
});

/** It only shrinks: what is left in comments of src is rewritten with the lines that it is in. */
const mostLeftInComments = 640;

describe('comments', () => {
  const inComments = (folder: string): readonly string[] =>
    readComments(folder).flatMap(({ path, prose }) =>
      findWords(prose, wordList).map(({ line, found, say }) => `${path}:${line} "${found}": ${say}`),
    );

  it('of bench and scripts use no word of the list', () => {
    assert.deepEqual(['bench', 'scripts'].flatMap(inComments), []);
  });

  it('of src use no more of them than are left', () => {
    const left = inComments('src');
    assert.ok(left.length <= mostLeftInComments, `${left.length} are left:\n${left.join('\n')}`);
  });

  it('are found in each form that has a line to itself, without code spans', () => {
    const source = "/** One. */\n * two `mend`\n// three\nconst a = 'b'; // four";
    assert.equal(commentsOfSource(source), 'One. */\ntwo 0\nthree\n');
  });
});

describe('#proseOfSource', () => {
  it('leaves out comments, names, code spans and what is filled in', () => {
    const source =
      "// mend it all now\nconst a = 'key-name'; // mend\n" +
      `const b = \`run \${mend(a)} and then \\\`mend\\\` again\`;`;
    assert.deepEqual(proseOfSource(source), ['run 0 and then 0 again']);
  });

  it('finds a plain text and one in double quotes', () => {
    assert.deepEqual(proseOfSource(`f('this is one', "this is Anna's number two")`), [
      'this is one',
      "this is Anna's number two",
    ]);
  });
});
