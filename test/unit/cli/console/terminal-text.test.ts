import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { columnsOf, cutToColumns, printableJson } from '../../../../src/cli/console/terminal-text.js';
import { printable } from '../../../../src/core/text/printable.js';

describe('printable', () => {
  it('shows characters that would move the cursor or reverse the text', () => {
    assert.equal(
      printable('a\u0000\u001b[2J\n\u202e\u2066\u0085ä日'),
      'a\\u{0}\\u{1b}[2J\\u{a}\\u{202e}\\u{2066}\\u{85}ä日',
    );
  });
});

describe('an invisible character', () => {
  for (const hidden of ['\u200b', '\ufeff', '\u00ad', '\u3164', '\ufe0f', '\u{e0041}', '\ufff9']) {
    const code = hidden.codePointAt(0)?.toString(16);
    it(`U+${code} is shown, and its JSON has the same value`, () => {
      assert.equal(printable(`a${hidden}b`), `a\\u{${code}}b`);
      const json = printableJson({ text: `a${hidden}b` });
      assert.match(json, /^[ -~]*$/);
      assert.deepEqual(JSON.parse(json), { text: `a${hidden}b` });
    });
  }
});

describe('columns', () => {
  for (const [text, columns] of [
    ['', 0],
    ['grün', 4],
    ['日本語', 6],
    ['한글', 4],
    ['ｗｉｄｅ', 8],
    ['u\u0308', 1],
    ['a\u200bb', 2],
    ['🚀', 2],
    ['𠀋', 2],
    ['€ – “x”', 7],
  ] as const) {
    it(`of "${text}" are ${columns}`, () => assert.equal(columnsOf(text), columns));
  }

  it('contain as many whole characters as fit', () => {
    assert.equal(cutToColumns('日本語', 5), '日本');
    assert.equal(cutToColumns('日本語', 6), '日本語');
    assert.equal(cutToColumns('abc', 0), '');
    assert.equal(cutToColumns('🚀🚀', 3), '🚀');
  });
});
