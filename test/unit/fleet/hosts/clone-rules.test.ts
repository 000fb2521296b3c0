import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeIds, type SeenIds } from '../../../../src/fleet/hosts/clone-rules.js';

/** One letter for each report: small for boots of one installation, capitals for other installations. */
function after(boots: string): boolean {
  let seen: SeenIds = { installId: 'i', bootId: '', pastIds: '', returns: 0 };
  let cloned = false;
  for (const boot of boots) {
    const next = { installId: boot === boot.toUpperCase() ? boot : 'i', bootId: boot.toLowerCase() };
    const judged = judgeIds(seen, next);
    cloned = judged.cloned;
    seen = { ...next, pastIds: judged.pastIds, returns: judged.returns };
  }
  return cloned;
}

describe('ids under one key', () => {
  it('are of one machine while it boots, however often', () =>
    assert.equal(after('abcdefghijklmnopqrstuvwxyz'), false));
  it('are of one machine that was restored from a snapshot of its memory once', () =>
    assert.equal(after('aabba'), false));
  it('are of two when they alternate: boots', () => assert.equal(after('abab'), true));
  it('are of two when they alternate: installations', () => assert.equal(after('aAaA'), true));
  it('stay of two when one of them is switched off', () => assert.equal(after('ababbbb'), true));
  it('are remembered for a few boots only', () => {
    const { pastIds } = judgeIds(
      { installId: 'i', bootId: 'x', pastIds: JSON.stringify('abcdefgh'.split('')), returns: 0 },
      { installId: 'i', bootId: 'y' },
    );
    assert.deepEqual((JSON.parse(pastIds) as string[]).length, 8);
    assert.equal(pastIds.includes('"a"'), false);
  });
});
