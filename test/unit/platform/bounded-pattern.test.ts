import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boundedPattern } from '../../../src/platform/bounded-pattern.js';

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

  it('tries again when the time that ran out was not its own, as on a machine that is busy or slept', () => {
    const asked = (stepMs: number): number => {
      let calls = 0;
      const usedMs = (): number => {
        calls += 1;
        return calls * stepMs;
      };
      const pattern = boundedPattern('^(a+)+$', { timeoutMs: 20, usedMs });
      assert.equal(pattern.test(`${'a'.repeat(60)}b`), 'no-verdict');
      return calls;
    };
    assert.equal(asked(20), 2);
    assert.equal(asked(1), 5);
  });

  it('is none when its syntax is wrong', () => {
    assert.throws(() => boundedPattern('('), SyntaxError);
    assert.throws(() => boundedPattern('\\-'), SyntaxError);
  });

  it('cannot be more than a pattern', () => {
    assert.equal(boundedPattern('"\\); throw 1; \\("').test('"); throw 1; ("'), 'yes');
    assert.equal(boundedPattern('a/b\n').test('a/b\n'), 'yes');
  });

  it('bounds the time of all the parts of one text', () => {
    const pattern = boundedPattern('^(a+)+$', { timeoutMs: 20 });
    const before = process.cpuUsage();
    const test = pattern.forParts();
    // Each is slow, and not slow enough to be stopped by itself.
    const verdicts = Array.from({ length: 2000 }, () => test(`${'a'.repeat(18)}b`));
    assert.equal(verdicts.at(-1), 'no-verdict');
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < 2_000_000);
    assert.equal(pattern.forParts()('aaa'), 'yes');
  });

  it('names the line in which the match begins, as far as it is short', () => {
    const lineOf = (source: string, text: string) => boundedPattern(source).find(text);
    assert.deepEqual(lineOf('empty ACL', 'a\nERROR: empty ACL!\nb'), { line: 'ERROR: empty ACL!' });
    assert.deepEqual(lineOf('^b', 'a\nb'), { line: 'b' });
    assert.deepEqual(lineOf('^a', 'a\nb'), { line: 'a' });
    assert.deepEqual(lineOf('^', '\nb'), { line: '' });
    assert.deepEqual(lineOf('x', 'x'.repeat(5000)), { line: 'x'.repeat(200) });
    assert.equal(lineOf('^c', 'a\nb'), undefined);
    assert.equal(lineOf('^(a+)+$', `${'a'.repeat(60)}b`), 'no-verdict');
  });
});
