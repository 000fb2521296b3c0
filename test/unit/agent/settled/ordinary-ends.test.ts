import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countOrdinaryEnds } from '../../../../src/agent/settled/ordinary-ends.js';
import { noteRun, type SeenRun } from '../../../../src/agent/settled/runs-rules.js';
import type { Bake, WorkerRuns } from '../../../../src/agent/state/ledger.js';

const bootId = 'b';

/** An observation of a worker without a record of its ends. */
interface Observation extends Partial<SeenRun> {
  readonly atMs: number;
}

/** @returns the runs of a worker after these observations */
function runsAfter(observations: readonly Observation[]): WorkerRuns {
  const seen: SeenRun = { process: undefined, wasNotified: false, isBaking: false };
  const runs = observations.reduce<WorkerRuns | undefined>(
    (known, { atMs, ...one }) => noteRun(known, { ...seen, ...one }, { bootId, nowMs: atMs }),
    undefined,
  );
  return runs ?? assert.fail('no process was observed');
}

/** @returns observations each second, of a process that is replaced every five seconds; the first one is the first of its agent */
function replacedEveryFive(fromMs: number, toMs: number): Observation[] {
  const times = Array.from({ length: (toMs - fromMs) / 1000 }, (_, index) => fromMs + index * 1000);
  return times.map((atMs, index) => ({
    ...{ atMs, process: `p${Math.floor(atMs / 5000)}` },
    ...(index === 0 ? { isFirst: true } : {}),
  }));
}

/** @returns how many ends within a minute after the swap are ordinary */
function ordinaryIn(runs: WorkerRuns, startedAtMs: number): number {
  const bake = { startedAtMs } as Bake;
  return countOrdinaryEnds(runs, bake, {
    ...{ forMs: 30_000, nowMs: startedAtMs + 60_000 },
    isCounted: ({ kind }) => kind === 'unrecorded',
  });
}

describe('the ordinary ends of a worker', () => {
  it('are twice those of a bake time before the swap, scaled to the time after it', () => {
    // Ends at 75 s, 80 s and so on to 100 s.
    assert.equal(ordinaryIn(runsAfter(replacedEveryFive(0, 101_000)), 104_000), 24);
  });

  it('are those of an observation before a time without an agent, if the observation after it is short', () => {
    const before = replacedEveryFive(0, 101_000);
    const runs = runsAfter([...before, ...replacedEveryFive(203_000, 206_000)]);
    assert.deepEqual(runs.unobserved, { fromMs: 100_000, toMs: 203_000 });
    // 27 s to the last end before that time, and one end of 205 s.
    assert.equal(ordinaryIn(runs, 206_000), 28);
  });

  it('do not include the end that is found after a time without an agent', () => {
    const runs = runsAfter([...replacedEveryFive(0, 1000), ...replacedEveryFive(203_000, 204_000)]);
    assert.equal(runs.ends.length, 1);
    assert.deepEqual([ordinaryIn(runs, 206_000), ordinaryIn(runs, 410_000)], [0, 0]);
  });

  it('include a time without an agent in which the process was not replaced, or a supervisor recorded its ends', () => {
    const seen = { process: 'p', isFirst: true };
    assert.equal(
      runsAfter([
        { atMs: 0, ...seen },
        { atMs: 90_000, ...seen },
      ]).unobserved,
      undefined,
    );
    const record = { abnormal: 3, clean: 0, unrecorded: 0, mark: 'm' };
    const recorded = [
      { atMs: 0, ...seen, record },
      { atMs: 90_000, ...seen, process: 'q', record },
    ];
    assert.equal(runsAfter(recorded).unobserved, undefined);
  });

  it('are those before the first of two times without an agent, if the observation between them was short', () => {
    const before = [...replacedEveryFive(0, 101_000), ...replacedEveryFive(203_000, 220_000)];
    const runs = runsAfter([...before, ...replacedEveryFive(303_000, 306_000)]);
    assert.deepEqual([runs.watchedSinceMs, runs.unobserved], [0, { fromMs: 100_000, toMs: 303_000 }]);
    assert.equal(ordinaryIn(runs, 306_000), 28);
  });

  it('are those between two times without an agent, if that observation took ten minutes', () => {
    const before = [...replacedEveryFive(0, 901_000), ...replacedEveryFive(1_003_000, 1_606_000)];
    const runs = runsAfter([...before, ...replacedEveryFive(2_003_000, 2_004_000)]);
    assert.deepEqual(
      [runs.watchedSinceMs, runs.unobserved],
      [1_003_000, { fromMs: 1_605_000, toMs: 2_003_000 }],
    );
  });

  it('stay those before the swap, if no agent runs in the bake time', () => {
    const before = [...replacedEveryFive(0, 101_000), ...replacedEveryFive(203_000, 206_000)];
    const inBake = replacedEveryFive(243_000, 245_000).map((one) => ({ ...one, isBaking: true }));
    assert.equal(ordinaryIn(runsAfter([...before, ...inBake]), 206_000), 28);
  });

  it('are those before the swap, if the clock was set back after a time without an agent', () => {
    const before = [{ atMs: 0, process: 'p12', isFirst: true }, ...replacedEveryFive(60_000, 101_000)];
    const runs = runsAfter([...before, ...replacedEveryFive(143_000, 145_000)]);
    assert.equal(ordinaryIn(runs, 104_000), 24);
  });
});
