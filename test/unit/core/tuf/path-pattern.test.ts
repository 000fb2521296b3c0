import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { matchesPattern } from '../../../../src/core/tuf/path-pattern.js';

describe('matchesPattern', () => {
  const matching: [string, string][] = [
    ['dns-edge/stable.tar.br', 'dns-edge/stable.tar.br'],
    ['dns-*/*', 'dns-edge/stable.tar.br'],
    ['*/stable.tar.*', 'dns-edge/stable.tar.br'],
    ['*', ''],
    ['**', 'anything'],
    ['', ''],
    ['?', 'ä'],
    ['?', '\u{1f600}'],
    ['a?c*', 'abc'],
    ['*.tgz', 'foo.tgz'],
    ['*.tgz', '.tgz'],
    ['*', '.hidden'],
    ['*b*b', 'abbb'],
    ['*ab', 'aab'],
    ['*/*/*', '//'],
  ];
  for (const [pattern, path] of matching) {
    it(`lets ${JSON.stringify(pattern)} speak for ${JSON.stringify(path)}`, () => {
      assert.equal(matchesPattern(pattern, path), true);
    });
  }

  const other: [string, string, string][] = [
    ['dns-*', 'dns-edge/stable.tar.br', 'a star crosses no slash'],
    ['dns?edge', 'dns/edge', 'nor does a question mark'],
    ['**', 'a/b', 'nor do two stars'],
    ['dns-*/*', 'DNS-edge/x', 'case counts'],
    ['?', '', 'a question mark is one character'],
    ['a?', 'abc', 'and not two'],
    ['a', 'ab', 'the whole is compared'],
    ['*a', 'ab', 'to its end'],
    ['{a,b}', 'a', 'braces are braces'],
    ['[ab]', 'a', 'brackets are brackets'],
    ['!(x)', 'y', 'no extended globs'],
    ['!a', 'b', 'no negation'],
    ['#a', 'a', 'no comments'],
    ['a\\*', 'a*', 'no escapes'],
    ['a.c', 'abc', 'a dot is a dot'],
    ['a/b', 'a', 'as many parts'],
    ['', 'a', 'nothing speaks for nothing'],
  ];
  for (const [pattern, path, why] of other) {
    it(`does not let ${JSON.stringify(pattern)} speak for ${JSON.stringify(path)}: ${why}`, () => {
      assert.equal(matchesPattern(pattern, path), false);
    });
  }

  it('agrees with a regular expression that has the same meaning', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '\u{1f600}'), maxLength: 12 });
    const pattern = fc.string({
      unit: fc.constantFrom('a', 'b', '/', '.', '*', '?', '\u{1f600}'),
      maxLength: 12,
    });
    fc.assert(
      fc.property(pattern, text, (one, path) => {
        const source = one.replaceAll('.', '\\.').replaceAll('*', '[^/]*').replaceAll('?', '[^/]');
        assert.equal(matchesPattern(one, path), new RegExp(`^${source}$`, 'u').test(path));
      }),
      { numRuns: 3000 },
    );
  });

  it('matches special characters literally', () => {
    for (const name of ['{a,b}', '!(x)', '#a', '[ab]', 'a\\b', '+(a|b)', '$', '^a']) {
      assert.equal(matchesPattern(name, name), true);
    }
  });

  it('is fast for patterns that cause backtracking', () => {
    const text = 'a'.repeat(1024);
    const before = process.cpuUsage();
    assert.equal(matchesPattern(`${'*a'.repeat(2000)}b`, text), false);
    assert.equal(matchesPattern(`${'*'.repeat(100_000)}`, text), true);
    assert.equal(matchesPattern(`${'*a'.repeat(50)}*b`, text), false);
    assert.equal(matchesPattern('*', `${text}a`), false, 'no delegation speaks for so long a path');
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < 5_000_000, `${user + system} us of the processor`);
  });
});
