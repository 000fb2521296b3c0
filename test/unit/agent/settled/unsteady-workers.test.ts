import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findUnsteadyWorkers, untakenTooLongSinceMs } from '../../../../src/agent/settled/bake-rules.js';
import type { Bake, ProcessEnd, WorkerLedger, WorkerRuns } from '../../../../src/agent/state/ledger.js';

const startedAtMs = 1_000_000;
const forMs = 30_000;
const bake: Bake = {
  ...{ serial: 2, manifestDigest: `sha256:${'a'.repeat(64)}`, startedAtMs, observedMs: 0 },
  ...{ seenAtMs: startedAtMs, bootId: 'b' },
} as Bake;

function end(afterMs: number, more: Partial<ProcessEnd> = {}): ProcessEnd {
  return { atMs: startedAtMs + afterMs, livedMs: 1000, kind: 'unrecorded', ...more };
}

/** @returns whether one worker is unsteady so many milliseconds after the swap */
function isUnsteady(
  afterMs: number,
  ends: readonly ProcessEnd[],
  { gone, entry = {} }: { readonly gone?: WorkerRuns['gone']; readonly entry?: Partial<WorkerLedger> } = {},
): boolean {
  const healthy: WorkerLedger = {
    wanted: 2,
    confirmed: 2,
    state: 'confirmed',
    text: 'ok',
    atMs: startedAtMs,
  };
  const before = { process: '7', sinceMs: 0, watchedSinceMs: 0, bootId: 'b' };
  const runs: WorkerRuns = { ...before, ends, ...(gone === undefined ? {} : { gone }) };
  const worker = { key: 'app/a', entry: { ...healthy, ...entry }, runs, isDead: false };
  const group = { group: 'app', min: 1, workers: [worker] };
  return findUnsteadyWorkers([group], { bake, forMs, nowMs: startedAtMs + afterMs }).length > 0;
}

describe('a worker of a release in its bake time', () => {
  it('is steady if no process ended since the swap', () => {
    assert.equal(isUnsteady(5000, []), false);
    assert.equal(isUnsteady(5000, [end(-10)]), false);
  });

  it('is unsteady for a third of the bake time after a restart, and for a bake time after two of them', () => {
    assert.deepEqual([isUnsteady(14_999, [end(5000)]), isUnsteady(15_000, [end(5000)])], [true, false]);
    const two = [end(1000), end(5000)];
    assert.deepEqual([isUnsteady(34_999, two), isUnsteady(35_000, two)], [true, false]);
    const long = [end(15_000, { livedMs: 15_000 }), end(30_000, { livedMs: 15_000 })];
    assert.equal(isUnsteady(40_000, long), false, 'each ran for half of the bake time');
  });

  it('is unsteady without a living process for three bake times, and then counts as stopped', () => {
    const gone = { atMs: startedAtMs + 5000, livedMs: 1000 };
    assert.deepEqual([isUnsteady(94_999, [], { gone }), isUnsteady(95_000, [], { gone })], [true, false]);
    assert.equal(
      isUnsteady(5000, [], { gone: { atMs: startedAtMs - 1, livedMs: 1 } }),
      false,
      'before the swap',
    );
  });

  it('is unsteady until its successor has taken the release', () => {
    const entry = { state: 'pending', appeared: true } as const;
    assert.equal(isUnsteady(80_000, [end(5000)], { entry }), true);
    assert.equal(isUnsteady(95_000, [end(5000)], { entry }), false);
  });

  it('is not unsteady after a stop that its supervisor recorded', () => {
    const gone = { atMs: startedAtMs + 7000, livedMs: 1000 };
    assert.equal(isUnsteady(8000, [end(5000, { kind: 'clean' })], { gone }), false);
    assert.equal(isUnsteady(8000, [end(2000), end(5000, { kind: 'clean' })]), false);
  });

  it('is not unsteady if it ended at least half as often before the swap', () => {
    const after = [end(3000), end(5000), end(6000), end(7000)];
    assert.equal(isUnsteady(8000, [end(-4000), end(-2000), ...after]), false);
    assert.equal(isUnsteady(8000, [end(-2000), ...after]), true);
    const attributed = [end(-4000, { isAttributed: true }), end(-2000, { isAttributed: true })];
    assert.equal(isUnsteady(8000, [...attributed, ...after]), true);
  });
});

describe('a release that no worker has', () => {
  it('is reported after three bake times and the deadlines of its notifications', () => {
    const sinceAt = (afterMs: number): number | undefined =>
      untakenTooLongSinceMs({ untakenSinceMs: 5 }, { forMs, nowMs: 5 + afterMs, deadlineMs: 2000 });
    assert.deepEqual([sinceAt(91_999), sinceAt(92_000)], [undefined, 5]);
    assert.equal(untakenTooLongSinceMs({}, { forMs, nowMs: 9e9, deadlineMs: 0 }), undefined);
  });
});
