import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { countLineChanges } from '../../../../src/core/text/line-count.js';

function count(before: string, after: string) {
  return countLineChanges(Buffer.from(before), Buffer.from(after));
}

/** Each line as often as it is there, the last one without its line feed apart. */
function slowCount(before: string, after: string) {
  const left = linesOf(before);
  let added = 0;
  for (const line of linesOf(after)) {
    const at = left.indexOf(line);
    if (at === -1) added += 1;
    else left.splice(at, 1);
  }
  return { added, removed: left.length };
}

function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

describe('countLineChanges', () => {
  it('counts added and removed lines, and not moved ones', () => {
    assert.deepEqual(count('a\nb\nc\n', 'c\na\nx\ny\n'), { added: 2, removed: 1 });
    assert.deepEqual(count('a\na\nb\n', 'a\nb\nb\n'), { added: 1, removed: 1 });
    assert.deepEqual(count('', 'a\n\n'), { added: 2, removed: 0 });
    assert.deepEqual(count('a\nb', ''), { added: 0, removed: 2 });
    assert.deepEqual(count('', ''), { added: 0, removed: 0 });
  });

  it('counts a last line without its line feed as another line', () => {
    assert.deepEqual(count('a\nb\n', 'a\nb'), { added: 1, removed: 1 });
  });

  it('is undefined for content with a zero byte', () => {
    assert.equal(count('a\n', 'a\0\n'), undefined);
    assert.equal(count('\0', 'a\n'), undefined);
  });

  it('matches a slow and exact count', () => {
    const text = fc
      .array(fc.constantFrom('a', 'b', 'ab', 'ba', '', 'abc', ' a', 'a '), { maxLength: 30 })
      .chain((lines) => fc.constantFrom(lines.join('\n'), lines.map((line) => `${line}\n`).join('')));
    fc.assert(
      fc.property(text, text, (before, after) => {
        assert.deepEqual(count(before, after), slowCount(before, after));
      }),
    );
  });

  it('distinguishes a million similar lines', () => {
    const lines = Array.from({ length: 1_000_000 }, (_, index) => `${index}\n`);
    const other = [...lines.slice(0, 999_999), 'other\n'];
    assert.deepEqual(count(lines.join(''), other.join('')), { added: 1, removed: 1 });
  });
});
