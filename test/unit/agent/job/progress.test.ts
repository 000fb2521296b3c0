import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startCycleProgress } from '../../../../src/agent/job/progress.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

describe('the progress of a cycle', () => {
  const open = () => startCycleProgress({ cycle: 'c-1', trigger: 'pull', clock: fakeClock() });

  it('counts the received bytes, also if a download begins again', () => {
    const progress = open();
    for (const doneBytes of [40, 100, 30, 100]) progress.reportBytes('fetch', doneBytes, 100);
    assert.equal(progress.fetchedBytes(), 200);
  });

  it('counts no byte that was on disk before, whether it was used or not', () => {
    for (const [then, came] of [
      [[100], 40],
      [[80, 10, 100], 120],
    ] as const) {
      const progress = open();
      progress.resumes(60);
      for (const doneBytes of [60, ...then]) progress.reportBytes('fetch', doneBytes, 100);
      assert.equal(progress.fetchedBytes(), came);
    }
  });

  it('counts nothing if a resumed download ends before its first byte, once or repeatedly', () => {
    const progress = open();
    progress.resumes(60);
    assert.equal(progress.fetchedBytes(), 0);
    progress.resumes(60);
    for (const doneBytes of [60, 100]) progress.reportBytes('fetch', doneBytes, 100);
    assert.equal(progress.fetchedBytes(), 40);
  });
});
