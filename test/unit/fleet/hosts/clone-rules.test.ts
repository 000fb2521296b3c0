import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeIds, type SeenIds } from '../../../../src/fleet/hosts/clone-rules.js';

/** One letter for each report: lower case for boots of one installation, capitals for other installations; `!` answers a challenge. */
function after(boots: string): boolean {
  let seen: SeenIds = { installId: 'i', bootId: '', pastIds: '', returns: 0, answers: 0 };
  let cloned = false;
  for (const report of boots.match(/.!?/g) ?? []) {
    const boot = report[0] ?? '';
    const ids = { installId: boot === boot.toUpperCase() ? boot : 'i', bootId: boot.toLowerCase() };
    const next = { ...ids, isAnswer: report.endsWith('!') };
    const judged = judgeIds(seen, next);
    cloned = judged.cloned;
    seen = { ...next, ...judged };
  }
  return cloned;
}

describe('ids under one key', () => {
  it('are of one machine for any number of boots', () =>
    assert.equal(after('abcdefghijklmnopqrstuvwxyz'), false));
  it('are of one machine that was restored from a snapshot of its memory once', () =>
    assert.equal(after('aabba'), false));
  it('are of two when they alternate: boots', () => assert.equal(after('abab'), true));
  it('are of two when they alternate: installations', () => assert.equal(after('aAaA'), true));
  it('are of one machine with restored state, and of two machines with counters that overtake each other in one boot', () => {
    assert.equal(after('aa!aa!aa!aa'), false);
    assert.equal(after('aa!aa!aa!aa!'), true);
  });
  it('are of one machine that restores its state at each boot', () =>
    assert.equal(after('ab!b!c!c!d!d!'), false));
  it('stay of two when one of them is switched off', () => assert.equal(after('ababbbb'), true));
  it('are stored once each, without the current pair and that of a store without ids', () => {
    const past = (pastIds: readonly string[], bootId: string, next: string): unknown =>
      JSON.parse(
        judgeIds(
          { installId: 'i', bootId, pastIds: JSON.stringify(pastIds), returns: 0, answers: 0 },
          { installId: 'i', bootId: next, isAnswer: false },
        ).pastIds,
      );
    assert.deepEqual(past(['i a', 'i b', 'i c'], 'd', 'b'), ['i a', 'i c', 'i d']);
    assert.deepEqual(past(['i a', 'i b', 'i c'], 'b', 'd'), ['i a', 'i c', 'i b']);
    assert.deepEqual(past([], '', 'a'), []);
  });
  it('are stored for a few boots only', () => {
    const { pastIds } = judgeIds(
      { installId: 'i', bootId: 'x', pastIds: JSON.stringify('abcdefgh'.split('')), returns: 0, answers: 0 },
      { installId: 'i', bootId: 'y', isAnswer: false },
    );
    assert.deepEqual((JSON.parse(pastIds) as string[]).length, 8);
    assert.equal(pastIds.includes('"a"'), false);
  });
});
