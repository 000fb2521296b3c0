import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noteRun, type SeenRun } from '../../../../src/agent/settled/runs-rules.js';
import type { WorkerRuns } from '../../../../src/agent/state/ledger.js';

const boot = { bootId: 'b' };
const first: WorkerRuns = { process: '100', sinceMs: 0, watchedSinceMs: 0, bootId: 'b', ends: [] };
const seen: SeenRun = { process: '100', wasNotified: true, isBaking: true };

/** @returns the runs after these observations, one each second */
function runsAfter(...observations: readonly Partial<SeenRun>[]): WorkerRuns | undefined {
  return observations.reduce<WorkerRuns | undefined>(
    (known, one, index) => noteRun(known, { ...seen, ...one }, { ...boot, nowMs: (index + 1) * 1000 }),
    first,
  );
}

describe('an end', () => {
  it('of a busy process is not attributed to the release if its successor took it before the next observation', () => {
    const runs = runsAfter({ hadNotTaken: true }, { process: '101', hadNotTaken: false });
    assert.deepEqual(
      runs?.ends.map(({ hadNotTaken }) => hadNotTaken),
      [true],
    );
    assert.equal(runs?.isUntaken, undefined);
  });

  it('is attributed to the release if the process took it after it had been busy', () => {
    const runs = runsAfter({ hadNotTaken: true }, { hadNotTaken: false }, { process: '101' });
    assert.deepEqual(
      runs?.ends.map(({ hadNotTaken }) => hadNotTaken),
      [undefined],
    );
  });

  it('is attributed to the release if it is the end of the successor', () => {
    const runs = runsAfter({ hadNotTaken: true }, { process: '101' }, { process: '102' });
    assert.deepEqual(
      runs?.ends.map(({ hadNotTaken }) => hadNotTaken),
      [true, undefined],
    );
  });

  it('is observed without a write while nothing changes', () => {
    const before = runsAfter({ hadNotTaken: true });
    assert.equal(noteRun(before, { ...seen, hadNotTaken: true }, { ...boot, nowMs: 9000 }), before);
  });
});

describe('the ends of a worker', () => {
  it('are kept up to a number within bake times, and up to another one outside of them', () => {
    const times = (count: number, isBaking: boolean) =>
      Array.from({ length: count }, (_, index) => ({ process: `${isBaking ? 'b' : 'a'}${index}`, isBaking }));
    const counts = (runs: WorkerRuns | undefined): number[] => {
      const attributed = runs?.ends.filter(({ isAttributed }) => isAttributed === true).length ?? 0;
      return [attributed, (runs?.ends.length ?? 0) - attributed];
    };
    assert.deepEqual(counts(runsAfter(...times(70, false))), [0, 64]);
    assert.deepEqual(counts(runsAfter(...times(70, false), ...times(110, true))), [104, 64]);
    const mixed = runsAfter(...times(30, false), ...times(30, true));
    assert.deepEqual(
      mixed?.ends.map(({ atMs }) => atMs),
      Array.from({ length: 60 }, (_, index) => (index + 1) * 1000),
    );
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

  it('is the observed time if a start time is unknown', () => {
    assert.equal(livedMs('100@1764000000', { process: '101@1764000004' }), 10_000, 'by supervisord');
    assert.equal(livedMs('100', { process: '101@1400', startTicks: 1400 }), 10_000);
    assert.equal(livedMs('100@1764000000', { process: '101@1400', startTicks: 1400 }), 10_000);
    const record = { abnormal: 0, clean: 0, unrecorded: 1, mark: 'm' };
    assert.equal(livedMs('100@1000', { process: '100@1000', startTicks: 1000, record }), 10_000);
  });

  it('ends at the first observation without the process', () => {
    const gone = { process: undefined, isDead: true };
    const runs = runsAfter(gone, gone, gone, { process: '101' });
    assert.deepEqual(
      runs?.ends.map((one) => one.livedMs),
      [1000],
    );
    assert.equal(runs?.gone, undefined);
    const hidden = runsAfter({ process: undefined }, {}, {}, { process: '101' });
    assert.equal(hidden?.ends[0]?.livedMs, 4000, 'a driver that could not see it');
    const back = runsAfter(gone, { process: '100' }, {}, { process: '101' });
    assert.equal(back?.ends[0]?.livedMs, 4000, 'the same process again');
  });

  it('is measured from the start of a process to the first observation without it', () => {
    const known = { ...first, process: '100@1000', sinceMs: 500 };
    const gone = { ...seen, process: undefined, isDead: true };
    const lived = (bootMs: number, before: WorkerRuns = known): number | undefined => {
      const found = noteRun(before, gone, { ...boot, nowMs: 2000, bootMs });
      const successor = { ...seen, process: '101@2400', startTicks: 2400 };
      return noteRun(found, successor, { ...boot, nowMs: 9000, bootMs: 24_500 })?.ends[0]?.livedMs;
    };
    assert.equal(lived(13_000), 3000);
    assert.equal(lived(11_000), 1500, 'a clock that was set forward, or the name of another driver');
    assert.equal(lived(99_000), 14_000, 'the successor started before that observation ended');
  });

  it('excludes the seconds that the driver took to detect the dead worker', () => {
    const known = { ...first, process: '100', sinceMs: 500 };
    const gone = { ...seen, process: undefined, isDead: true };
    assert.equal(
      noteRun(known, gone, { ...boot, nowMs: 7000, askedAtMs: 1500, bootMs: 9000 })?.gone?.livedMs,
      1000,
    );
    assert.equal(noteRun(known, gone, { ...boot, nowMs: 7000, bootMs: 9000 })?.gone?.livedMs, 6500);
  });
});
