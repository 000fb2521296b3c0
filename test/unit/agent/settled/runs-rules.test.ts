import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noteRun, type SeenRun } from '../../../../src/agent/settled/runs-rules.js';
import type { WorkerRuns } from '../../../../src/agent/state/ledger.js';

const boot = { bootId: 'b' };
const first: WorkerRuns = { process: '100', sinceMs: 0, watchedSinceMs: 0, bootId: 'b', ends: [] };
const seen: SeenRun = { process: '100', wasNotified: true, isBaking: true };

/** @returns the runs after these looks, one each second */
function look(...looks: readonly Partial<SeenRun>[]): WorkerRuns | undefined {
  return looks.reduce<WorkerRuns | undefined>(
    (known, one, index) => noteRun(known, { ...seen, ...one }, { ...boot, nowMs: (index + 1) * 1000 }),
    first,
  );
}

describe('an end', () => {
  it('of a process that was busy is not the release’s, where its successor took it before the next look', () => {
    const runs = look({ hadNotTaken: true }, { process: '101', hadNotTaken: false });
    assert.deepEqual(
      runs?.ends.map(({ hadNotTaken }) => hadNotTaken),
      [true],
    );
    assert.equal(runs?.isUntaken, undefined);
  });

  it('is the release’s where the process took it after it had been busy', () => {
    const runs = look({ hadNotTaken: true }, { hadNotTaken: false }, { process: '101' });
    assert.deepEqual(
      runs?.ends.map(({ hadNotTaken }) => hadNotTaken),
      [undefined],
    );
  });

  it('is the release’s where it is the end of the successor', () => {
    const runs = look({ hadNotTaken: true }, { process: '101' }, { process: '102' });
    assert.deepEqual(
      runs?.ends.map(({ hadNotTaken }) => hadNotTaken),
      [true, undefined],
    );
  });

  it('is looked for without a write while nothing changes', () => {
    const before = look({ hadNotTaken: true });
    assert.equal(noteRun(before, { ...seen, hadNotTaken: true }, { ...boot, nowMs: 9000 }), before);
  });
});

describe('the lifetime of a process', () => {
  const livedMs = (before: string, seenNow: Partial<SeenRun>, nowMs = 10_000): number | undefined => {
    const known = { ...first, process: before };
    return noteRun(known, { ...seen, ...seenNow }, { ...boot, nowMs })?.ends[0]?.livedMs;
  };

  it('is measured from start to start, and not from observation to observation', () => {
    assert.equal(livedMs('100@1000', { process: '101@1400', startTicks: 1400 }), 4000);
    assert.equal(livedMs('100@1000', { process: '101@1400', startTicks: 1400 }, 9e9), 4000, 'a clock step');
  });

  it('is the time for which it was observed where a start time is not known', () => {
    assert.equal(livedMs('100@1764000000', { process: '101@1764000004' }), 10_000, 'by supervisord');
    assert.equal(livedMs('100', { process: '101@1400', startTicks: 1400 }), 10_000);
    assert.equal(livedMs('100@1764000000', { process: '101@1400', startTicks: 1400 }), 10_000);
    const record = { abnormal: 0, clean: 0, unrecorded: 1, mark: 'm' };
    assert.equal(livedMs('100@1000', { process: '100@1000', startTicks: 1000, record }), 10_000);
  });
});
