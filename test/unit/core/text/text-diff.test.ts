import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { diffTexts } from '../../../../src/core/text/text-diff.js';

const bounds = { maxLines: 100, maxLineCharacters: 20 };
const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

describe('the difference of two texts', () => {
  it('contains the removed and added lines, with three lines of context', () => {
    const before = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];
    const after = ['a', 'b', 'c', 'd', 'E', 'f', 'g', 'h', 'i', 'j', 'k'];
    assert.deepEqual(diffTexts(text(before), text(after), bounds), {
      lines: ['@@ -2 +2 @@', ' b', ' c', ' d', '-e', '+E', ' f', ' g', ' h', ' i', ' j', '+k'],
      leftOut: 0,
    });
  });

  it('omits lines that are far from a change', () => {
    const before = Array.from({ length: 30 }, (_, index) => `line ${index}`);
    const after = before.map((line, index) => (index === 2 || index === 25 ? `${line}!` : line));
    const { lines } = diffTexts(text(before), text(after), bounds)!;
    assert.deepEqual(
      lines.filter((line) => line.startsWith('@@')),
      ['@@ -1 +1 @@', '@@ -23 +23 @@'],
    );
    assert.equal(lines.length, 2 + 7 + 8);
  });

  it('marks a last line without a line feed', () => {
    assert.deepEqual(diffTexts('a\n', 'a', bounds)?.lines, ['@@ -1 +1 @@', '-a', '+a (no end of line)']);
  });

  it('is limited in lines and in their length', () => {
    const { lines, leftOut } = diffTexts('', text(Array.from({ length: 9 }, () => 'x'.repeat(99))), {
      ...bounds,
      maxLines: 4,
    })!;
    assert.deepEqual(lines, ['@@ -1 +1 @@', ...Array.from({ length: 3 }, () => `+${'x'.repeat(19)}...`)]);
    assert.equal(leftOut, 6);
  });

  it('is undefined if the texts have too little in common', () => {
    const many = (word: string): string =>
      text(Array.from({ length: 400 }, (_, index) => `${word} ${index}`));
    assert.equal(diffTexts(many('a'), many('b'), bounds), undefined);
  });

  it('produces the second text from the first, with the fewest lines', () => {
    const lines = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 4 });
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const found = diffTexts(text(before), text(after), bounds)?.lines.slice(1) ?? [];
        const side = (kind: string): string[] =>
          found.filter((line) => line.startsWith(' ') || line.startsWith(kind)).map((line) => line.slice(1));
        if (found.length === 0) return assert.deepEqual(before, after);
        assert.deepEqual(side('-'), before);
        assert.deepEqual(side('+'), after);
        const edits = found.filter((line) => !line.startsWith(' ')).length;
        assert.equal(edits, before.length + after.length - 2 * longestCommon(before, after));
      }),
    );
  });
});

function longestCommon([first, ...rest]: readonly string[], other: readonly string[]): number {
  if (first === undefined || other.length === 0) return 0;
  const at = other.indexOf(first);
  const without = longestCommon(rest, other);
  return at === -1 ? without : Math.max(without, 1 + longestCommon(rest, other.slice(at + 1)));
}
