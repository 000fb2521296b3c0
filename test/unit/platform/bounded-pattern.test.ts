import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boundedPattern } from '../../../src/platform/bounded-pattern.js';

/** For patterns that have a verdict. */
const patient = { timeoutMs: 60_000 };

describe('a pattern with a bound', () => {
  it('matches at lines', () => {
    const pattern = boundedPattern('^0003 ', patient);
    assert.equal(pattern.test('0002-Reading\n0003 Reconfigured'), 'yes');
    assert.equal(pattern.test('0002-Reading 0003 Reconfigured'), 'no');
    assert.equal(pattern.test('0003 again'), 'yes');
  });

  it('has no verdict where it would run for years', () => {
    const pattern = boundedPattern('^(a+)+$');
    assert.equal(pattern.test(`${'a'.repeat(60)}b`), 'no-verdict');
    assert.equal(boundedPattern('^(a+)+$', patient).test('aaa'), 'yes');
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
    assert.equal(asked(20), 4, 'two tries, each with the processor time before and after');
    assert.equal(asked(1), 6, 'three tries');
  });

  it('is tried again where only the first try used the processor, as in a garbage collection', () => {
    let calls = 0;
    const usedMs = (): number => {
      calls += 1;
      // Behind the first try, as if it had used the processor; no time for the others.
      return calls === 2 ? 20 : 0;
    };
    const pattern = boundedPattern('^(a+)+$', { timeoutMs: 20, usedMs });
    assert.equal(pattern.test(`${'a'.repeat(60)}b`), 'no-verdict');
    assert.equal(calls, 6, 'the other two tries follow');
  });

  it('is none when its syntax is wrong', () => {
    assert.throws(() => boundedPattern('('), SyntaxError);
    assert.throws(() => boundedPattern('\\-'), SyntaxError);
  });

  it('cannot be more than a pattern', () => {
    assert.equal(boundedPattern('"\\); throw 1; \\("', patient).test('"); throw 1; ("'), 'yes');
    assert.equal(boundedPattern('a/b\n', patient).test('a/b\n'), 'yes');
  });

  it('bounds the time of all the parts of one text', () => {
    let usedMs = 0;
    // Each part takes half of what one text may take.
    const used = (): number => {
      usedMs += 15_000;
      return usedMs;
    };
    const pattern = boundedPattern('^a+$', { timeoutMs: 60_000, usedMs: used });
    const test = pattern.forParts();
    const verdicts = Array.from({ length: 25 }, () => test('aaa'));
    assert.deepEqual(verdicts, [...Array(20).fill('yes'), ...Array(5).fill('no-verdict')]);
    assert.equal(pattern.forParts()('aaa'), 'yes');
  });

  it('names the line in which the match begins, as far as it is short', () => {
    const lineOf = (source: string, text: string) => boundedPattern(source, patient).find(text);
    assert.deepEqual(lineOf('empty ACL', 'a\nERROR: empty ACL!\nb'), { line: 'ERROR: empty ACL!' });
    assert.deepEqual(lineOf('^b', 'a\nb'), { line: 'b' });
    assert.deepEqual(lineOf('^a', 'a\nb'), { line: 'a' });
    assert.deepEqual(lineOf('^', '\nb'), { line: '' });
    assert.deepEqual(lineOf('x', 'x'.repeat(5000)), { line: 'x'.repeat(200) });
    assert.equal(lineOf('^c', 'a\nb'), undefined);
    assert.equal(boundedPattern('^(a+)+$').find(`${'a'.repeat(60)}b`), 'no-verdict');
  });
});
