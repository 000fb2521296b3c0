import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type BakingGroup,
  type EvidenceOptions,
  findFailure,
  findSuccessors,
  untakenGroups,
} from '../../../../src/agent/settled/evidence-rules.js';
import type { Bake, ProcessEnd, WorkerLedger, WorkerRuns } from '../../../../src/agent/state/ledger.js';

const startedAtMs = 1_000_000;
const bake: Bake = {
  ...{ serial: 2, manifestDigest: `sha256:${'a'.repeat(64)}`, startedAtMs, observedMs: 0 },
  ...{ seenAtMs: startedAtMs, bootId: 'b' },
} as Bake;
const options: EvidenceOptions = { bake, forMs: 600_000, restarts: 2, nowMs: startedAtMs + 300_000 };
const healthy: WorkerLedger = { wanted: 2, confirmed: 2, state: 'confirmed', text: 'ok', atMs: startedAtMs };

function end(afterMs: number, kind: ProcessEnd['kind'], more: Partial<ProcessEnd> = {}): ProcessEnd {
  return { atMs: startedAtMs + afterMs, livedMs: 10_000, kind, ...more };
}

function runs(ends: readonly ProcessEnd[], watchedForMs = 600_000): WorkerRuns {
  const sinceMs = startedAtMs - watchedForMs;
  return { process: '7', sinceMs, watchedSinceMs: sinceMs, bootId: 'b', ends };
}

function groupOf(workers: readonly [Partial<WorkerLedger>, WorkerRuns | undefined][], min = 1): BakingGroup {
  return {
    ...{ group: 'app', min },
    workers: workers.map(([entry, own], index) => ({
      ...{ key: `app/w${index}`, entry: { ...healthy, ...entry }, runs: own, isDead: false },
    })),
  };
}

function causeOf(group: BakingGroup, more: Partial<EvidenceOptions> = {}): string | undefined {
  return findFailure([group], { ...options, ...more })?.cause;
}

describe('findFailure', () => {
  it('finds no failure of healthy workers, and none of a group without workers', () => {
    assert.equal(causeOf(groupOf([[{}, runs([])]])), undefined);
    assert.equal(causeOf(groupOf([])), undefined);
    assert.equal(causeOf(groupOf([[{}, undefined]])), undefined);
  });

  it('counts an abnormal end after the swap, and none before it or of another bake', () => {
    assert.equal(causeOf(groupOf([[{}, runs([end(1, 'abnormal')])]])), 'WORKER_DIED');
    assert.equal(causeOf(groupOf([[{}, runs([end(-1, 'abnormal')])]])), undefined);
    const usual = [end(-5, 'abnormal'), end(1, 'abnormal')];
    assert.equal(causeOf(groupOf([[{}, runs(usual)]])), undefined);
    const attributed = [end(-5, 'abnormal', { isAttributed: true }), end(1, 'abnormal')];
    assert.equal(causeOf(groupOf([[{}, runs(attributed)]])), 'WORKER_DIED');
    const older = [end(-600_001, 'abnormal'), end(1, 'abnormal')];
    assert.equal(causeOf(groupOf([[{}, runs(older)]])), 'WORKER_DIED');
  });

  it('finds the failure of one group beside one that works', () => {
    const works = groupOf([[{}, runs([])]]);
    const fails = { ...groupOf([[{}, runs([end(1, 'abnormal')])]]), group: 'side' };
    assert.deepEqual(findFailure([works, fails], options)?.groups, ['side']);
    assert.deepEqual(findFailure([fails, works], options)?.groups, ['side']);
  });

  it('counts no end of a process that had not loaded the release', () => {
    const busy = end(1, 'abnormal', { hadNotTaken: true });
    assert.equal(causeOf(groupOf([[{}, runs([busy])]])), undefined);
    assert.equal(causeOf(groupOf([[{}, runs([busy, end(2, 'abnormal')])]])), 'WORKER_DIED');
  });

  it('counts no end at the time of the swap, which was observed before it', () => {
    assert.equal(causeOf(groupOf([[{}, runs([end(0, 'abnormal')])]])), undefined);
  });

  it('counts the second abnormal end of a group of several workers, or one that leaves fewer than min', () => {
    const one = runs([end(1, 'abnormal')]);
    const none = runs([]);
    assert.equal(
      causeOf(
        groupOf([
          [{}, one],
          [{}, none],
        ]),
      ),
      undefined,
    );
    assert.equal(
      causeOf(
        groupOf([
          [{}, one],
          [{}, one],
        ]),
      ),
      'WORKER_DIED',
    );
    const dead = { state: 'unreachable', lives: 'no' } as const;
    assert.equal(
      causeOf(
        groupOf(
          [
            [dead, one],
            [{}, none],
          ],
          2,
        ),
      ),
      'WORKER_DIED',
    );
  });

  it('counts unexplained restarts only above the tolerated number, without the first and its successor', () => {
    const times = (count: number, more: Partial<ProcessEnd> = {}): ProcessEnd[] =>
      Array.from({ length: count }, (_, index) => end(1 + index, 'unrecorded', more));
    assert.equal(causeOf(groupOf([[{}, runs(times(3))]])), undefined, 'the first is not counted');
    assert.equal(causeOf(groupOf([[{}, runs(times(4))]])), 'WORKER_DIED');
    assert.equal(causeOf(groupOf([[{}, runs(times(4, { wasNotified: true }))]])), undefined);
    assert.equal(causeOf(groupOf([[{}, runs(times(5, { wasNotified: true }))]])), 'WORKER_DIED');
    assert.equal(causeOf(groupOf([[{}, runs(times(4), 0)]])), undefined, 'nothing was observed before');
    assert.equal(causeOf(groupOf([[{}, runs(times(6), 0)]])), 'WORKER_DIED');
    const long = times(9, { livedMs: 300_000 }).map((one) => ({ ...one, atMs: startedAtMs + 290_000 }));
    assert.equal(
      causeOf(groupOf([[{}, runs(long)]])),
      undefined,
      'runs of more than a third of the bake time',
    );
  });

  /** @returns the cause after `count` short runs, the first of which does not count, and these ends before the swap */
  const causeAfter = (count: number, before: readonly ProcessEnd[], watchedForMs?: number) => {
    const after = Array.from({ length: count }, (_, index) => end(1 + index, 'unrecorded'));
    return causeOf(groupOf([[{}, runs([...before, ...after], watchedForMs)]]));
  };
  const endsBefore = (count: number, gapMs: number, more: Partial<ProcessEnd> = {}): ProcessEnd[] =>
    Array.from({ length: count }, (_, index) => end((index - count) * gapMs, 'unrecorded', more));

  it('counts no restarts that were at least half as frequent before the swap', () => {
    const before = endsBefore(10, 30_000);
    assert.deepEqual([causeAfter(21, before), causeAfter(22, before)], [undefined, 'WORKER_DIED']);
    const older = endsBefore(10, 30_001);
    assert.deepEqual([causeAfter(19, older), causeAfter(20, older)], [undefined, 'WORKER_DIED'], 'too early');
  });

  it('compares with the rate of the time in which the worker was observed, from three ends on', () => {
    const three = endsBefore(3, 10_000);
    assert.deepEqual(
      [causeAfter(61, three, 30_000), causeAfter(62, three, 30_000)],
      [undefined, 'WORKER_DIED'],
    );
    const two = endsBefore(2, 10_000);
    assert.deepEqual([causeAfter(5, two, 30_000), causeAfter(6, two, 30_000)], [undefined, 'WORKER_DIED']);
  });

  it('compares with a bake time before the swap at most, also if the bake time takes longer', () => {
    const quietBefore = endsBefore(10, 60_000);
    const at = (count: number) => {
      const after = Array.from({ length: count }, (_, index) => end(1 + index, 'unrecorded'));
      const group = groupOf([[{}, runs([...quietBefore, ...after], 9_000_000)]]);
      return causeOf(group, { nowMs: startedAtMs + 1_200_000 });
    };
    assert.deepEqual([at(41), at(42)], [undefined, 'WORKER_DIED']);
  });

  it('compares with the time before an earlier bake time that was not over', () => {
    const earlier = endsBefore(10, 30_000).map((one) => ({ ...one, atMs: one.atMs - 300_000 }));
    const inBake = [end(-300_000, 'unrecorded', { isAttributed: true })];
    const counts = [21, 22].map((count) => causeAfter(count, [...earlier, ...inBake], 900_000));
    assert.deepEqual(counts, [undefined, 'WORKER_DIED']);
  });

  it('compares with the rate of the recorded ends if older ones were dropped', () => {
    const full = endsBefore(64, 1000);
    assert.equal(causeAfter(200, full), undefined);
    assert.equal(causeAfter(200, full.slice(-40), 40_000), undefined);
    assert.equal(causeAfter(200, full.slice(-40)), 'WORKER_DIED', 'none ended in the time before');
  });

  it('counts a worker that refuses a release that it had accepted, and none that never accepted it', () => {
    assert.equal(causeOf(groupOf([[{ state: 'refused' }, undefined]])), 'WORKER_REFUSED');
    assert.equal(causeOf(groupOf([[{ state: 'refused', confirmed: 1 }, undefined]])), undefined);
    assert.equal(causeOf(groupOf([[{ state: 'refused', goneAtMs: 1 }, undefined]])), undefined);
  });

  it('counts a probe that had passed after six wrong answers in a row', () => {
    assert.equal(causeOf(groupOf([[{ state: 'notified', probed: { wrong: 5 } }, undefined]])), undefined);
    assert.equal(
      causeOf(groupOf([[{ state: 'notified', probed: { wrong: 6 } }, undefined]])),
      'PROBE_FAILED',
    );
    const never = { state: 'notified', confirmed: 1, probed: { wrong: 6 } } as const;
    assert.equal(causeOf(groupOf([[never, undefined]])), undefined);
  });

  it('counts two boots without an orderly shutdown, and not one', () => {
    const group = groupOf([[{}, undefined]]);
    assert.equal(causeOf(group, { bake: { ...bake, abruptBoots: 1 } }), undefined);
    assert.equal(causeOf(group, { bake: { ...bake, abruptBoots: 2 } }), 'WORKER_DIED');
  });

  it('counts clean ends as no failure, in any number', () => {
    const ends = fc.array(
      fc.integer({ min: -600_000, max: 300_000 }).map((afterMs) => end(afterMs, 'clean')),
    );
    fc.assert(fc.property(ends, (all) => causeOf(groupOf([[{}, runs(all)]])) === undefined));
  });
});

describe('the successor of a process that took a release', () => {
  const ended = { ...runs([end(10, 'unrecorded')]), process: '8' };
  const untaken = (entry: Partial<WorkerLedger>) => untakenGroups([groupOf([[entry, ended]])]);

  it('has not taken the release until it was notified or probed', () => {
    assert.deepEqual(untaken({ state: 'pending', appeared: true, accepted: 2 }), ['app']);
    assert.deepEqual(
      untaken({ state: 'pending', accepted: 2 }),
      [],
      'its probe failed: it is the same process',
    );
    assert.deepEqual(untaken({}), [], 'no process is known to have answered');
  });

  it('has not taken the release if only the record of processes shows it', () => {
    assert.deepEqual(untaken({ process: '0f0f0f0f:7' }), ['app']);
    assert.deepEqual(untaken({ process: '0f0f0f0f:8' }), []);
    assert.deepEqual(untaken({ process: '0f0f0f0f:' }), [], 'no process was found when it answered');
    assert.deepEqual(untaken({ process: '0f0f0f0f:1764000000000.1' }), [], 'the name of a connection');
  });

  it('is found in a group in which other workers have taken the release', () => {
    const successors = (entry: Partial<WorkerLedger>, own = ended) =>
      findSuccessors(
        [
          groupOf([
            [entry, own],
            [{}, runs([])],
          ]),
        ],
        bake,
      );
    const appeared = { state: 'pending', appeared: true } as const;
    assert.deepEqual(successors(appeared), ['app/w0']);
    assert.deepEqual(successors({}), []);
    assert.deepEqual(successors({ ...appeared, goneAtMs: 1 }), []);
    assert.deepEqual(
      successors(appeared, runs([end(-10, 'unrecorded')])),
      [],
      'it ended before the bake time',
    );
  });
});
