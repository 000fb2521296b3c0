import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boundedPattern } from '../../../src/platform/bounded-pattern.js';

/** Enough time for patterns that have a verdict. */
const patient = { timeoutMs: 60_000 };

describe('a pattern with a bound', () => {
  it('matches at lines', () => {
    const pattern = boundedPattern('^0003 ', patient);
    assert.equal(pattern.test('0002-Reading\n0003 Reconfigured'), 'match');
    assert.equal(pattern.test('0002-Reading 0003 Reconfigured'), 'no-match');
    assert.equal(pattern.test('0003 again'), 'match');
  });

  it('has no verdict if it would run for years', () => {
    const pattern = boundedPattern('^(a+)+$');
    assert.equal(pattern.test(`${'a'.repeat(60)}b`), 'no-verdict');
    assert.equal(boundedPattern('^(a+)+$', patient).test('aaa'), 'match');
  });

  it('retries after a timeout without its own processor time, as on a busy or suspended machine', () => {
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

  it('retries if only the first attempt used the processor, as in a garbage collection', () => {
    let calls = 0;
    const usedMs = (): number => {
      calls += 1;
      // Reports processor time after the first attempt, and none for the others.
      return calls === 2 ? 20 : 0;
    };
    const pattern = boundedPattern('^(a+)+$', { timeoutMs: 20, usedMs });
    assert.equal(pattern.test(`${'a'.repeat(60)}b`), 'no-verdict');
    assert.equal(calls, 6, 'the other two tries follow');
  });

  it('is refused if its syntax is invalid', () => {
    assert.throws(() => boundedPattern('('), SyntaxError);
    assert.throws(() => boundedPattern('\\-'), SyntaxError);
  });

  it('cannot run other code than a pattern', () => {
    assert.equal(boundedPattern('"\\); throw 1; \\("', patient).test('"); throw 1; ("'), 'match');
    assert.equal(boundedPattern('a/b\n', patient).test('a/b\n'), 'match');
  });

  it('bounds the time of all the parts of one text', () => {
    let usedMs = 0;
    // Each part takes half of the time of one text.
    const used = (): number => {
      usedMs += 15_000;
      return usedMs;
    };
    const pattern = boundedPattern('^a+$', { timeoutMs: 60_000, usedMs: used });
    const test = pattern.forParts();
    const verdicts = Array.from({ length: 25 }, () => test('aaa'));
    assert.deepEqual(verdicts, [...Array(20).fill('match'), ...Array(5).fill('no-verdict')]);
    assert.equal(pattern.forParts()('aaa'), 'match');
  });

  it('returns the line in which the match begins, cut to a bound', () => {
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
