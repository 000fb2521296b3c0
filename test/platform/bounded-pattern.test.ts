import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boundedPattern } from '../../src/platform/bounded-pattern.js';

describe('a pattern with a bound', () => {
  it('matches at lines', () => {
    const pattern = boundedPattern('^0003 ');
    assert.equal(pattern.test('0002-Reading\n0003 Reconfigured'), 'yes');
    assert.equal(pattern.test('0002-Reading 0003 Reconfigured'), 'no');
    assert.equal(pattern.test('0003 again'), 'yes');
  });

  it('has no verdict where it would run for years', () => {
    const pattern = boundedPattern('^(a+)+$');
    assert.equal(pattern.test(`${'a'.repeat(60)}b`), 'no-verdict');
    assert.equal(pattern.test('aaa'), 'yes');
  });

  it('is none when its syntax is wrong', () => {
    assert.throws(() => boundedPattern('('), SyntaxError);
    assert.throws(() => boundedPattern('\\-'), SyntaxError);
  });

  it('cannot be more than a pattern', () => {
    assert.equal(boundedPattern('"\\); throw 1; \\("').test('"); throw 1; ("'), 'yes');
    assert.equal(boundedPattern('a/b\n').test('a/b\n'), 'yes');
  });
});
