// The values of a JSON text, counted before it is parsed.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countJsonValues } from '../../../../src/fleet/bodies/count-values.js';

const countOf = (text: string): number => countJsonValues(Buffer.from(text));

describe('the count of values', () => {
  it('counts objects, lists and separators, and nothing inside of strings', () => {
    assert.equal(countOf('{"a": [1, 2, 3], "b": {}}'), 6);
    assert.equal(countOf('{"a,{[": ",,,[[[{{{"}'), 1);
    assert.equal(countOf('["\\",,,", "\\\\", 1]'), 3);
    assert.equal(countOf('"never ends, {['), 0);
    assert.equal(countOf(''), 0);
  });

  it('is half of the values of a document at least', () => {
    for (const [text, values] of [
      ['1', 1],
      ['[[[[]]]]', 4],
      ['{"a":{"b":{"c":1}}}', 4],
      [`[${'{},'.repeat(999)}{}]`, 1001],
    ] as const)
      assert.ok(countOf(text) * 2 + 1 >= values, text.slice(0, 20));
  });
});
