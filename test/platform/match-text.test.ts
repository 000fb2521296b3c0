import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { matchText } from '../../src/platform/match-text.js';

const match = (pattern: string, text: string, timeoutMs = 20_000) =>
  matchText({ pattern, text }, { timeoutMs });

describe('matchText', () => {
  it('names the line in which the match begins', async () => {
    assert.deepEqual(await match('empty ACL', 'a\nERROR: empty ACL!\nb'), {
      kind: 'matched',
      line: 'ERROR: empty ACL!',
    });
    assert.deepEqual(await match('^b', 'a\nb'), { kind: 'matched', line: 'b' });
    assert.deepEqual(await match('^a', 'a\nb'), { kind: 'matched', line: 'a' });
  });

  it('says when there is none', async () => {
    assert.deepEqual(await match('^c', 'a\nb'), { kind: 'none' });
  });

  it('keeps a long line short', async () => {
    const found = await match('x', 'x'.repeat(5000));
    assert.equal(found.kind === 'matched' && found.line.length, 200);
  });

  it('ends a pattern that backtracks without end', async () => {
    assert.deepEqual(await match('^(a+)+$', `${'a'.repeat(50)}!`, 300), { kind: 'timed-out' });
  });

  it('says why a pattern cannot be used', async () => {
    assert.equal((await match('(', 'a')).kind, 'failed');
  });
});
