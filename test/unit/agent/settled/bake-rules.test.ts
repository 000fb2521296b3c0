import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeBakeGap } from '../../../../src/agent/settled/bake-gap-rules.js';
import { addSettled, judgeBake, startBake, withObserved } from '../../../../src/agent/settled/bake-rules.js';
import { noteRun } from '../../../../src/agent/settled/runs-rules.js';
import { successorNoticeAtMs } from '../../../../src/agent/settled/successor-rules.js';
import type {
  AcceptedRelease,
  Bake,
  ProcessEnd,
  SettledRelease,
  UnsettledBundle,
  WorkerRuns,
} from '../../../../src/agent/state/ledger.js';

const release = { serial: 2, manifestDigest: `sha256:${'a'.repeat(64)}` } as AcceptedRelease;
const start = { nowMs: 1_000_000, bootId: 'b' };
const forMs = 600_000;

describe('the time of a bake', () => {
  it('counts the time since the last observation, and at most the time since the bake began', () => {
    const bake = { ...startBake(release, { ...start, nowMs: start.nowMs - 1 }), seenAtMs: start.nowMs };
    const seen = (nowMs: number, elapsedMs: number | undefined) =>
      withObserved(bake, {
        nowMs,
        bootId: 'b',
        elapsedMs,
        isTaken: true,
        isTakenSince: true,
        isSilent: false,
      }).observedMs;
    assert.equal(seen(start.nowMs + 2000, 2000), 2000);
    assert.equal(
      seen(start.nowMs + 2000, 900_000),
      2000,
      'the previous observation was long before the bake',
    );
    assert.equal(seen(start.nowMs + 9e8, 2000), 2000, 'the clock was set forward');
    assert.equal(seen(start.nowMs + 597_224.4, 597_223.97), 597_224, 'whole milliseconds');
  });

  it('counts no time before the first observation of a process, however short the absence of an agent was', () => {
    const bake = startBake(release, start);
    const after = (absentMs: number, elapsedMs?: number) =>
      withObserved(bake, {
        nowMs: start.nowMs + absentMs,
        ...{ bootId: 'b', elapsedMs, isTaken: true, isTakenSince: true, isSilent: false },
      }).observedMs;
    assert.deepEqual([after(59_999), after(1000), after(-1)], [0, 0, 0]);
    assert.equal(after(-1, 2000), 0, 'the clock was set back');
  });

  it('counts nothing at the first observation, because the move may have notified the workers for minutes', () => {
    const moveMs = 120_000;
    const facts = { bootId: 'b', elapsedMs: moveMs, isTaken: true, isTakenSince: true, isSilent: false };
    const first = withObserved(startBake(release, start), { ...facts, nowMs: start.nowMs + moveMs });
    assert.equal(first.observedMs, 0);
    const second = withObserved(first, { ...facts, elapsedMs: 2000, nowMs: start.nowMs + moveMs + 2000 });
    assert.equal(second.observedMs, 2000);
  });

  it('counts nothing while a probe that had passed gives no answer', () => {
    const bake = { ...startBake(release, start), seenAtMs: start.nowMs + 2000 };
    const next = {
      nowMs: start.nowMs + 4000,
      bootId: 'b',
      elapsedMs: 2000,
      isTaken: true,
      isTakenSince: true,
    };
    assert.equal(withObserved(bake, { ...next, isSilent: true }).observedMs, 0);
    assert.equal(withObserved(bake, { ...next, isSilent: false }).observedMs, 2000);
  });

  it('ends after the observed time, or after three times as long on the clock', () => {
    const bake = { ...startBake(release, start), observedMs: forMs };
    const judge = (more: object, nowMs: number, isDoubted = false, isSilent = false) =>
      judgeBake({ ...bake, ...more }, { forMs, nowMs, isDoubted, isSilent });
    assert.equal(judge({}, start.nowMs + forMs), 'settled');
    assert.equal(judge({ observedMs: forMs - 1 }, start.nowMs + 3 * forMs - 1), 'baking');
    assert.equal(judge({ observedMs: 0 }, start.nowMs + 3 * forMs), 'unobserved');
    assert.equal(judge({}, start.nowMs + 9 * forMs, true), 'baking', 'while a probe fails');
    assert.equal(judge({}, start.nowMs + forMs, false, true), 'baking', 'a successor is not notified yet');
    assert.equal(judge({}, start.nowMs + 3 * forMs, false, true), 'unobserved');
    const { seenAtMs: untakenAtMs } = bake;
    assert.equal(judge({ untakenAtMs }, start.nowMs + forMs), 'baking', 'no worker has taken it');
    const failure = { cause: 'WORKER_DIED', text: 'x', atMs: 1, groups: [] };
    assert.equal(judge({ failure }, start.nowMs + 9 * forMs), 'failed');
  });

  it('does not pass until a worker has taken the release', () => {
    const untakenMs = start.nowMs + 9 * forMs;
    const facts = { bootId: 'b', elapsedMs: 2000, isSilent: false };
    const untaken = withObserved(startBake(release, start), {
      ...facts,
      nowMs: untakenMs,
      isTaken: false,
      isTakenSince: false,
    });
    const judge = (bake: Bake, nowMs: number) =>
      judgeBake(bake, { forMs, nowMs, isDoubted: false, isSilent: false });
    assert.deepEqual([untaken.observedMs, judge(untaken, untakenMs)], [0, 'baking']);
    const taken = withObserved(untaken, {
      ...facts,
      nowMs: untakenMs + 2000,
      isTaken: true,
      isTakenSince: true,
    });
    assert.equal(taken.observedMs, 0, 'it may have been taken at the end of these seconds');
    const next = withObserved(taken, {
      ...facts,
      nowMs: untakenMs + 4000,
      isTaken: true,
      isTakenSince: true,
    });
    assert.equal(next.observedMs, 2000);
    assert.equal(judge(taken, untakenMs + 3 * forMs - 1), 'baking');
    assert.equal(judge(taken, untakenMs + 3 * forMs), 'unobserved');
    assert.equal(judge(taken, start.nowMs), 'baking', 'after the clock was set back');
  });

  it('keeps the newest three settled releases, each once', () => {
    const settled = (serial: number): SettledRelease => ({
      ...{ ...release, serial, atMs: serial, isObserved: true, generation: serial },
    });
    const all = [1, 2, 3, 4, 2].map(settled).reduce(addSettled, [] as readonly SettledRelease[]);
    assert.deepEqual(
      all.map((one) => one.serial),
      [2, 4, 3],
    );
  });
});

describe('the runs of a worker', () => {
  const now = { nowMs: 5000, bootId: 'b' };
  const seen = { wasNotified: false, isBaking: false };

  it('begin with the first process, which has no end', () => {
    const first = noteRun(undefined, { ...seen, process: '1' }, now);
    assert.deepEqual([first?.process, first?.ends], ['1', []]);
    assert.equal(noteRun(undefined, { ...seen, process: undefined }, now), undefined);
  });

  it('have an end only if two process names of one kind differ', () => {
    const agent = 1_764_000_000_000;
    const isEnd = (before: string, after: string): boolean => {
      const first = noteRun(undefined, { ...seen, process: before }, now);
      const next = noteRun(first, { ...seen, process: after }, { ...now, nowMs: 7000 });
      assert.equal(next?.process, after);
      return next.ends.length > 0;
    };
    assert.equal(isEnd(`${agent}.1`, '4711@55'), false, 'an older version named the connection');
    assert.equal(isEnd('4711@55', `${agent}.1`), false, 'the process cannot be seen any more');
    assert.equal(isEnd(`${agent}.1`, `${agent + 9}.1`), false, 'another run of the agent');
    assert.equal(isEnd(`${agent}.1`, `${agent}.2`), true);
    assert.equal(isEnd('4711@55', '4711@56'), true);
    assert.equal(isEnd('4711@1764000000', '4712@1764000000'), true);
    assert.equal(isEnd('812@1764000000000', '813@1764000000001'), true, 'the file of a socket');
  });

  it('are the same value if nothing changed', () => {
    const first = noteRun(undefined, { ...seen, process: '1' }, now);
    assert.equal(noteRun(first, { ...seen, process: '1' }, { ...now, nowMs: 9000 }), first);
  });

  it('have an unrecorded end if another process is found, and none for an observation without a process', () => {
    const first = noteRun(undefined, { ...seen, process: '1' }, now);
    const gone = noteRun(first, { ...seen, process: undefined }, { ...now, nowMs: 6000 });
    assert.deepEqual([gone?.process, gone?.ends], ['1', []]);
    const other = noteRun(gone, { ...seen, process: '2' }, { ...now, nowMs: 7000 });
    assert.deepEqual(other?.ends, [{ atMs: 7000, livedMs: 2000, kind: 'unrecorded' }]);
  });

  it('start again in another boot, and lose ends with a time in the future', () => {
    const first = noteRun(undefined, { ...seen, process: '1' }, now);
    const other = noteRun(first, { ...seen, process: '2' }, { ...now, nowMs: 7000 });
    assert.deepEqual(noteRun(other, { ...seen, process: '3' }, { nowMs: 9000, bootId: 'c' })?.ends, []);
    assert.deepEqual(noteRun(other, { ...seen, process: '2' }, { ...now, nowMs: 6000 })?.ends, []);
  });

  it('have at most 64 ends', () => {
    const record = { abnormal: 1e6, clean: 1e6, unrecorded: 1e6, mark: 'm' };
    const first = noteRun(undefined, { ...seen, process: '1' }, now);
    assert.equal(noteRun(first, { ...seen, process: '1', record }, now)?.ends.length, 64);
  });
});

describe('judgeBakeGap', () => {
  const nowMs = 10_000_000;
  const gap = (unsettled: UnsettledBundle, bake?: object, other?: object): unknown => {
    const access = other && { access: { ...startBake(release, start), ...other } };
    const bakes = bake && { dns: { ...startBake(release, start), ...bake }, ...access };
    const known = { unsettled: { dns: unsettled }, ...(bakes === undefined ? {} : { bakes }) };
    const options = { isCorrection: false, forMs, set: ['dns', 'access'], nowMs };
    return judgeBakeGap({ bundle: 'dns', serial: 3 }, known, options)?.facts['untilMs'];
  };

  it('doubles from five minutes at the second restore to an hour', () => {
    const after = (restores: number) => gap({ sinceMs: nowMs, restores, restoredAtMs: nowMs, failed: [] });
    const minutes = [1, 2, 3, 4, 5, 6, 50].map((restores) => {
      const untilMs = after(restores);
      return typeof untilMs === 'number' ? (untilMs - nowMs) / 60_000 : undefined;
    });
    assert.deepEqual(minutes, [undefined, 5, 10, 20, 40, 60, 60]);
  });

  it('is over with its time, and a time in the future does not delay anything', () => {
    const known = { sinceMs: nowMs, restores: 2, failed: [] };
    assert.equal(gap({ ...known, restoredAtMs: nowMs - 300_000 }), undefined);
    assert.equal(gap({ ...known, restoredAtMs: nowMs + 1 }), undefined);
  });

  it('waits for a running bake after three bake times without a settled release, not for a failed one', () => {
    const known = { sinceMs: nowMs - 3 * forMs, restores: 0, failed: [] };
    const startedAtMs = nowMs - 1000;
    assert.equal(gap(known, { startedAtMs }), startedAtMs + forMs);
    assert.equal(gap({ ...known, sinceMs: nowMs - 3 * forMs + 1 }, { startedAtMs }), undefined);
    const failure = { cause: 'WORKER_DIED', text: 'x', atMs: 1, groups: [] };
    assert.equal(gap(known, { startedAtMs, failure }), undefined);
  });

  it('waits for the last bake of the set', () => {
    const known = { sinceMs: nowMs - 3 * forMs, restores: 0, failed: [] };
    assert.equal(gap(known, { startedAtMs: nowMs - forMs }), undefined, 'alone');
    const startedAtMs = nowMs - 1000;
    assert.equal(gap(known, { startedAtMs: nowMs - forMs }, { startedAtMs }), startedAtMs + forMs);
  });
});

describe('successorNoticeAtMs', () => {
  const minuteMs = 60_000;
  interface GivenEnd extends Partial<Omit<ProcessEnd, 'wasNotified'>> {
    readonly isNotified?: boolean;
  }
  const runsOf = (ends: readonly GivenEnd[]): WorkerRuns => ({
    ...{ process: '9', sinceMs: 0, watchedSinceMs: 0, bootId: 'b' },
    ends: ends.map(({ isNotified = true, ...one }, index) => ({
      ...{ atMs: 1000 + index, livedMs: 15_000, kind: 'unrecorded' },
      ...(isNotified ? { wasNotified: true } : {}),
      ...one,
    })),
  });
  const after = (count: number, more: GivenEnd = {}): number => {
    const ends = Array.from({ length: count }, () => more);
    const lastMs = 1000 + count - 1;
    const atMs = successorNoticeAtMs(runsOf(ends), { forMs });
    return atMs === 0 ? 0 : (atMs - lastMs) / minuteMs;
  };

  it('leaves no gap for the first three, then doubles it from a minute to an hour', () => {
    assert.deepEqual(
      [0, 1, 2, 3, 4, 5, 6, 9, 10, 64].map((count) => after(count)),
      [0, 0, 0, 0, 1, 2, 4, 32, 60, 60],
    );
    assert.equal(successorNoticeAtMs(undefined, { forMs }), 0);
  });

  it('leaves none after ends that an operator requested from the supervisor, and after a long run', () => {
    assert.equal(after(20, { kind: 'clean' }), 0);
    assert.equal(after(20, { livedMs: forMs }), 0);
    const row = [...Array.from({ length: 9 }, () => ({})), { livedMs: forMs }, {}];
    assert.equal(successorNoticeAtMs(runsOf(row), { forMs }), 0);
  });

  it('leaves none after the first end in a bake time, then a tenth of that time, doubled at each further end', () => {
    const inBake = (count: number, bakeMs: number): number => {
      const ends = Array.from({ length: count }, () => ({}));
      const atMs = successorNoticeAtMs(runsOf(ends), { forMs: bakeMs, bakeStartedAtMs: 500 });
      return atMs === 0 ? 0 : atMs - (1000 + count - 1);
    };
    const gaps = (bakeMs: number) => [1, 2, 3].map((count) => inBake(count, bakeMs));
    assert.deepEqual(gaps(30_000), [0, 3000, 6000]);
    assert.deepEqual(gaps(forMs), [0, minuteMs, 2 * minuteMs]);
    assert.deepEqual(gaps(100 * forMs), [0, minuteMs, 2 * minuteMs], 'a minute at most');
  });

  it('leaves none after two ends in a row of processes that were not notified, and a gap after one such end', () => {
    const without = { isNotified: false };
    const noticeAtMs = (ends: readonly GivenEnd[], bakeStartedAtMs?: number): number =>
      successorNoticeAtMs(runsOf(ends), { forMs, bakeStartedAtMs });
    const row = Array.from({ length: 6 }, () => ({}));
    assert.equal(noticeAtMs([without, without, ...row]), 0);
    assert.equal(noticeAtMs([without, without, ...row], 500), 0);
    const made = Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? without : {}));
    assert.notEqual(noticeAtMs(made), 0);
    const many = Array.from({ length: 15 }, () => ({}));
    assert.notEqual(noticeAtMs([without, without, ...many]), 0, 'long ago');
    assert.notEqual(noticeAtMs([without, { ...without, livedMs: forMs }, ...row]), 0, 'a long run');
    assert.notEqual(noticeAtMs([without, { ...without, kind: 'clean' }, ...row]), 0, 'a person');
    const atStart = { ...without, livedMs: 1200 };
    assert.notEqual(noticeAtMs([...row, atStart, atStart, {}]), 0, 'each ended right after its start');
  });

  it('counts a process that ran for less than ten minutes also if the bake time is shorter', () => {
    const after = (livedMs: number): number =>
      successorNoticeAtMs(runsOf(Array.from({ length: 4 }, () => ({ livedMs }))), { forMs: 10_000 });
    assert.deepEqual([after(599_999) > 0, after(600_000)], [true, 0]);
  });

  it('leaves none after the bake time for the ends within it', () => {
    const ends = Array.from({ length: 6 }, () => ({ isAttributed: true }) as const);
    assert.equal(successorNoticeAtMs(runsOf(ends), { forMs }), 0);
    assert.notEqual(successorNoticeAtMs(runsOf(ends), { forMs, bakeStartedAtMs: 500 }), 0);
  });

  it('leaves none after ends before the bake time', () => {
    const runs = runsOf([{}, {}, {}]);
    assert.equal(successorNoticeAtMs(runs, { forMs, bakeStartedAtMs: 5000 }), 0);
  });
});
