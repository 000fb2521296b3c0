import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { matchesPattern } from '../../../../src/core/tuf/path-pattern.js';
import { patternsOverlap } from '../../../../src/core/tuf/pattern-overlap.js';

describe('patternsOverlap', () => {
  for (const [a, b, expected] of [
    ['dns-*/*', 'dns-edge/*', true],
    ['dns-*/*', 'access/*', false],
    ['dns-*/*', '*-edge/*', true],
    ['dns-?/*', 'dns-10/*', false],
    ['*/stable.tar.br', '*/canary.tar.br', false],
    ['*/*.tar.br', 'a/b', false],
    ['a*b*c/x', 'a?c/x', true],
    ['a*b*c/x', 'ac/x', false],
    ['a*b*c/x', 'abc/x', true],
    ['*/*', '*', false],
    ['a/**', 'a/?', true],
    ['', '*', true],
    ['*a', 'b*', true],
  ] as const) {
    it(`${JSON.stringify(a)} and ${JSON.stringify(b)}: ${expected}`, () => {
      assert.equal(patternsOverlap(a, b), expected);
      assert.equal(patternsOverlap(b, a), expected);
    });
  }

  it('is true exactly when some path matches both', () => {
    const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?'), maxLength: 5 });
    // Every text of two letters up to the length that a common path of such patterns can need.
    const texts = [''];
    for (let length = 1, last = ['']; length <= 10; length += 1) {
      last = last.flatMap((text) => [`${text}a`, `${text}b`]);
      texts.push(...last);
    }
    fc.assert(
      fc.property(pattern, pattern, (a, b) => {
        const found = texts.some((text) => matchesPattern(a, text) && matchesPattern(b, text));
        assert.equal(patternsOverlap(a, b), found);
      }),
      { numRuns: 200 },
    );
  });

  it('is fast for patterns of stars only', () => {
    const stars = `${'*'.repeat(100)}/${'*a'.repeat(100)}`;
    assert.equal(patternsOverlap(stars, `${'*'.repeat(100)}/${'*b'.repeat(100)}`), false);
  });
});
