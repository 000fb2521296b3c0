import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  canonicalBytes,
  canonicalJson,
  compareCodePoints,
} from '../../../../src/core/text/canonical-json.js';
import { longCase } from '../../../kit/assert/long-case.js';

describe('canonicalJson', () => {
  it('sorts names, removes white space, and escapes only quote and backslash', () => {
    const value = { b: [1, null, true], a: 'x"\\\n\u00e9', '': {} };
    assert.equal(canonicalJson(value), '{"":{},"a":"x\\"\\\\\n\u00e9","b":[1,null,true]}');
    assert.equal(canonicalBytes('\u00e9').toString('hex'), '22c3a922');
  });

  it('sorts by code point: U+10000 comes after U+FFFD, where UTF-16 order would put it before', () => {
    assert.equal(canonicalJson({ '\u{10000}': 1, '\ufffd': 2 }), '{"\ufffd":2,"\u{10000}":1}');
  });

  it('orders any two strings as their UTF-8 bytes', longCase, () => {
    const text = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(text, text, (a, b) => {
        const expected = Buffer.compare(Buffer.from(a), Buffer.from(b));
        assert.equal(Math.sign(compareCodePoints(a, b)), expected);
      }),
    );
  });

  it('does not depend on the order of members', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string(),
          fc.maxSafeInteger().map((n) => n || 0),
        ),
        (object) => {
          const reversed = Object.fromEntries(Object.entries(object).reverse());
          assert.equal(canonicalJson(object), canonicalJson(reversed));
        },
      ),
    );
  });

  for (const [name, value] of Object.entries({
    'a float': 1.5,
    'a number past 2^53': 2 ** 53,
    'minus zero': -0,
    'a lone surrogate': '\ud800',
    'a lone surrogate as a name': { '\ud800': 1 },
    undefined: { a: undefined },
    'not a number': Number.NaN,
  })) {
    it(`has no form for ${name}`, () => {
      assert.throws(() => canonicalJson(value), { code: 'METADATA_MALFORMED' });
    });
  }

  it('is bounded in depth', () => {
    let value: unknown = 1;
    for (let depth = 0; depth < 100; depth += 1) value = [value];
    assert.throws(() => canonicalJson(value), { code: 'METADATA_MALFORMED' });
  });
});
