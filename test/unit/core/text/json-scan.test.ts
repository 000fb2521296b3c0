import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { scanJson } from '../../../../src/core/text/json-scan.js';

function problems(text: string, maxDepth = 10): { offset: number; text: string }[] {
  return [...scanJson(text, { maxDepth, maxContainers: 100, maxProblems: 5 }).problems];
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('scanJson', () => {
  it('finds no error in text that JSON.parse accepts', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), (text) => {
        const pretty = JSON.stringify(JSON.parse(text), null, 2);
        // fast-check may write one member twice; JSON.stringify never does.
        assert.deepEqual(problems(pretty), []);
      }),
    );
    for (const text of [
      '0',
      '-1.5e+10',
      '"\\u0041\\n\u007f\ud83d\ude00"',
      ' [ ] ',
      '{"":{}}',
      '[1,[2,{"a":null}]]',
    ]) {
      assert.deepEqual(problems(text), [], text);
    }
  });

  it('finds an error wherever JSON.parse does', () => {
    const alphabet = fc.constantFrom(...'{}[]",:0123.-eE+ \n\\utrfalsn'.split(''));
    fc.assert(
      fc.property(fc.string({ unit: alphabet, maxLength: 12 }), (text) => {
        const mistakes = problems(text).filter((problem) => !problem.text.includes('twice'));
        assert.equal(mistakes.length === 0, isJson(text), text);
      }),
      { numRuns: 5000 },
    );
  });

  const places: readonly (readonly [string, number])[] = [
    ['', 0],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ['{a:1}', 1],
    ['[1 2]', 3],
    ['[1,2', 4],
    ['{"a":01}', 5],
    ['{"a":tru}', 5],
    ['["a\nb"]', 1],
    ['["\\x"]', 1],
    ['{} {}', 3],
    ['\ufeff{}', 0],
    ['[NaN]', 1],
    ["['a']", 1],
  ];
  for (const [text, offset] of places) {
    it(`returns the position of the error in ${JSON.stringify(text)}`, () => {
      assert.deepEqual(
        problems(text).map((problem) => problem.offset),
        [offset],
      );
    });
  }

  it('finds each duplicate member, also with other escapes', () => {
    assert.deepEqual(
      problems('{"a":1,"b":{"x":1,"\\u0078":2},"a":3}').map(({ offset }) => offset),
      [18, 30],
    );
  });

  it('stops at its bound of problems', () => {
    const text = `{${'"a":1,'.repeat(100)}"a":1}`;
    assert.equal(problems(text).length, 6);
  });

  it('rejects deep nesting before the stack overflows', () => {
    assert.equal(problems('['.repeat(10) + ']'.repeat(10)).length, 0);
    assert.equal(problems('['.repeat(12) + ']'.repeat(12)).length, 1);
    assert.equal(problems('['.repeat(1_000_000)).length, 1);
  });

  it('returns the positions of requested values', () => {
    const text = '{"a/b": [1, {"~": true}], "c": 2}';
    const wanted = new Set(['', '/a~1b/1/~0', '/a~1b/0', '/c', '/none']);
    const { offsets } = scanJson(text, { maxDepth: 10, maxContainers: 100, maxProblems: 5, wanted });
    assert.deepEqual(Object.fromEntries(offsets), { '': 0, '/a~1b/0': 9, '/a~1b/1/~0': 18, '/c': 31 });
  });

  it('limits the number of objects and arrays, and accepts exactly the bound', () => {
    const count = (text: string): number =>
      scanJson(text, { maxDepth: 10, maxContainers: 3, maxProblems: 5 }).problems.length;
    assert.equal(count('[{},[]]'), 0);
    assert.equal(count('[{},[],{}]'), 1);
  });
});
