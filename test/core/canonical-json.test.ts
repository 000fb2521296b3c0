// The bytes that signatures are made over: one value, one text; two values, two texts; no form, no signature.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  canonicalBytes,
  canonicalJson,
  compareCodePoints,
  isWellFormed,
} from '../../src/core/canonical-json.js';
import { throwsCode } from '../support/assert-code.js';

/** Values that have a canonical form. */
const { value: canonical } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.boolean(),
    fc.maxSafeInteger(),
    fc.string({ unit: 'grapheme' }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.string({ unit: 'grapheme' }), tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

/** The same value with the members of every object the other way round. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, reversed(item)]),
  );
}

describe('canonical JSON', () => {
  it('has no white space, sorted keys, and the two escapes that there are', () => {
    const value = { b: [1, true, null], a: 'say "x" \\ y', '': {} };
    assert.equal(canonicalJson(value), '{"":{},"a":"say \\"x\\" \\\\ y","b":[1,true,null]}');
  });

  it('writes control characters as they are, where JSON would escape them', () => {
    assert.deepEqual([...canonicalBytes('a\n\t\0\u007f')], [0x22, 0x61, 0x0a, 0x09, 0x00, 0x7f, 0x22]);
  });

  it('sorts keys by code point, where JavaScript would sort by UTF-16 unit', () => {
    const text = canonicalJson({ '\u{1f600}': 1, '\uff5e': 2 });
    assert.equal(text, '{"\uff5e":2,"\u{1f600}":1}');
    assert.ok(compareCodePoints('\uff5e', '\u{1f600}') < 0);
  });

  it('does not depend on the order of members', () => {
    fc.assert(
      fc.property(canonical, (value) => assert.equal(canonicalJson(value), canonicalJson(reversed(value)))),
    );
  });

  it('differs for values that differ', () => {
    fc.assert(
      fc.property(canonical, canonical, (a, b) => {
        const same = JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
        assert.equal(canonicalBytes(a).equals(canonicalBytes(b)), same);
      }),
    );
  });

  it('keeps a member called __proto__ as the data it is', () => {
    assert.equal(canonicalJson(JSON.parse('{"__proto__":1}')), '{"__proto__":1}');
  });
});

/** Keys in one order, for comparing values by JSON.stringify. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => compareCodePoints(a, b))
    .map(([key, item]) => [key, sorted(item)])
    .concat([['an object', true]]);
}

describe('what has no canonical form', () => {
  const deep = (depth: number): unknown => (depth === 0 ? 0 : [deep(depth - 1)]);
  const cases: readonly [string, unknown][] = [
    ['a fraction', 1.5],
    ['a number too large to be exact', 2 ** 53],
    ['a number that is none', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['minus zero, which prints as zero', -0],
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in a key', { '\udc00': 1 }],
    ['undefined', undefined],
    ['a member that is undefined', { a: undefined }],
    ['a hole in an array', [undefined]],
    ['a bigint', 1n],
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
    ['a value nested too deeply', deep(65)],
  ];
  for (const [what, value] of cases) {
    it(`refuses ${what}`, () => {
      throwsCode('METADATA_MALFORMED', () => canonicalJson(value));
    });
  }

  it('takes what is just not too deep', () => {
    assert.equal(canonicalJson(deep(64)), `${'['.repeat(64)}0${']'.repeat(64)}`);
  });
});

describe('isWellFormed', () => {
  it('tells a pair of surrogates from half of one', () => {
    assert.equal(isWellFormed('\u{1f600}'), true);
    assert.equal(isWellFormed('\ude00\ud83d'), false);
    assert.equal(isWellFormed('a\ud83d'), false);
  });
});
