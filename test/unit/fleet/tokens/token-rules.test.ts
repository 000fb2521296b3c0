import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { coversHost, hasRole, stateOfToken } from '../../../../src/fleet/tokens/token-rules.js';

describe('a pattern of host names', () => {
  const cases = [
    ['', 'anything', true],
    ['web-*', 'web-1', true],
    ['web-*', 'web-', true],
    ['web-*', 'db-web-1', false],
    ['*-fra', 'web-1-fra', true],
    ['web-?', 'web-12', false],
    ['*a*b*', 'xxaxxbxx', true],
    ['*a*b*', 'xxbxxaxx', false],
    ['web.1', 'web-1', false],
    ['a*', '*', false],
    ['*x', '*ax', true],
    ['*', '', true],
    ['?', '', false],
    ['web', 'web-1', false],
  ] as const;
  for (const [pattern, host, covers] of cases)
    it(`${pattern} ${covers ? 'covers' : 'does not cover'} ${host}`, () =>
      assert.equal(coversHost(pattern, host), covers));

  it('matches like a regular expression', () => {
    const letters = (...of: string[]) =>
      fc.array(fc.constantFrom(...of), { maxLength: 8 }).map((all) => all.join(''));
    fc.assert(
      fc.property(letters('a', 'b', '*', '?'), letters('a', 'b'), (pattern, host) => {
        const source = pattern.replaceAll('*', '.*').replaceAll('?', '.');
        assert.equal(coversHost(pattern, host), pattern === '' || new RegExp(`^${source}$`).test(host));
      }),
      { numRuns: 2000 },
    );
  });

  it('takes no longer for a pattern that would block a regular expression for years', () => {
    assert.equal(coversHost(`${'*a'.repeat(100)}b`, 'a'.repeat(255)), false);
  });
});

describe('a token', () => {
  const token = { revoked_at_ms: 0, expires_at_ms: 0, uses_left: -1 };
  it('is valid until it expires, is used up, or is revoked', () => {
    assert.equal(stateOfToken(token, 5), 'good');
    assert.equal(stateOfToken({ ...token, expires_at_ms: 6 }, 5), 'good');
    assert.equal(stateOfToken({ ...token, expires_at_ms: 5 }, 5), 'expired');
    assert.equal(stateOfToken({ ...token, uses_left: 0 }, 5), 'used-up');
    assert.equal(stateOfToken({ ...token, uses_left: 1, revoked_at_ms: 1 }, 5), 'revoked');
  });

  it('permits what its role permits, and nothing without a role', () => {
    const may = (role: Parameters<typeof hasRole>[0]) =>
      (['view', 'detail', 'operate'] as const).filter((one) => hasRole(role, one));
    assert.deepEqual(may('view'), ['view']);
    assert.deepEqual(may('detail'), ['view', 'detail']);
    assert.deepEqual(may('operate'), ['view', 'detail', 'operate']);
    assert.deepEqual(may(''), []);
  });
});
