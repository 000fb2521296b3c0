import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeHook } from '../../../../src/core/cycle/hook-verdict.js';

describe('judgeHook', () => {
  const table = [
    [0, 'ok'],
    [1, 'refused'],
    [31, 'refused'],
    [32, 'warned'],
    [63, 'warned'],
    [64, 'broken'],
    [74, 'broken'],
    [75, 'deferred'],
    [76, 'broken'],
    [125, 'broken'],
    [126, 'broken'],
    [127, 'broken'],
    [128, 'broken'],
    [255, 'broken'],
  ] as const;
  for (const [exitCode, kind] of table) {
    it(`judges exit ${exitCode} as ${kind}`, () => {
      const verdict = judgeHook({ kind: 'exited', exitCode });
      assert.equal(verdict.kind, kind);
      assert.match(verdict.reason, new RegExp(`exit ${exitCode}`));
    });
  }

  it('has no verdict for a command that did not exit by itself', () => {
    assert.equal(judgeHook({ kind: 'killed', signal: 'SIGSEGV' }).kind, 'broken');
    assert.equal(judgeHook({ kind: 'timed-out' }).kind, 'broken');
    assert.equal(judgeHook({ kind: 'aborted' }).kind, 'broken');
    assert.equal(judgeHook({ kind: 'not-started', reason: 'ENOENT' }).kind, 'broken');
  });

  it('describes the end of a command', () => {
    assert.equal(judgeHook({ kind: 'killed', signal: 'SIGSEGV' }).reason, 'killed by SIGSEGV');
    assert.equal(judgeHook({ kind: 'not-started', reason: 'ENOENT' }).reason, 'not started: ENOENT');
  });
});
