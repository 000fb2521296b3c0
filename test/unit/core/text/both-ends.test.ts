import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bothEndsOfLines, bothEndsOfText } from '../../../../src/core/text/both-ends.js';

describe('both ends of an output', () => {
  it('are the whole output if it is short enough', () => {
    assert.deepEqual(bothEndsOfLines(['a', 'b', 'c'], 3), ['a', 'b', 'c']);
    assert.equal(bothEndsOfText('abc', 3), 'abc');
  });

  it('are the first few lines and the last ones, with the number of omitted lines', () => {
    const lines = Array.from({ length: 100 }, (_, at) => `line ${at}`);
    assert.deepEqual(bothEndsOfLines(lines, 6), [
      ...['line 0', 'line 1', '(94 more lines)'],
      ...['line 96', 'line 97', 'line 98', 'line 99'],
    ]);
    assert.deepEqual(bothEndsOfLines(['a', 'b', 'c'], 2), ['(1 more line)', 'b', 'c']);
  });

  it('are at most as many characters as given', () => {
    const text = bothEndsOfText(`begin${'x'.repeat(10_000)}the error`, 2000);
    assert.ok(text.length <= 2000 && text.length > 1990, String(text.length));
    assert.match(text, /^begin.*\n\(\d+ more characters\)\n.*the error$/);
    const left = Number(/\((\d+) more/.exec(text)?.[1]);
    assert.equal(text.replace(/\n.*\n/, '').length + left, 10_014);
  });
});
