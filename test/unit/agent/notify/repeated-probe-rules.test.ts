// What follows from the answers of a repeated probe: the answers as letters, and the resulting entry of the worker.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  afterFailedProbe,
  afterPassedProbe,
  afterProbeWithoutVerdict,
  isProbedAgain,
  noticeGapMs,
} from '../../../../src/agent/notify/repeated-probe-rules.js';
import type { WorkerLedger } from '../../../../src/agent/state/ledger.js';

const confirmed: WorkerLedger = { wanted: 4, confirmed: 4, state: 'confirmed', text: 'ok', atMs: 1 };
const minuteMs = 60_000;

/** `w` fails, `r` passes, `s` gives no verdict. A due notification is sent before the next answer, and confirms nothing. */
function play(answers: string, everyMs = 30_000, canBeNotified = true) {
  let worker = confirmed;
  const dueAtMs: number[] = [];
  for (const [index, answer] of [...answers].entries()) {
    const nowMs = index * everyMs;
    if (answer === 'r') worker = afterPassedProbe(worker, nowMs);
    else if (answer === 's') worker = afterProbeWithoutVerdict(worker, 'timed out', 0);
    else worker = afterFailedProbe(worker, { text: 'exit 1', nowMs, canBeNotified });
    if (worker.state !== 'pending') continue;
    dueAtMs.push(nowMs);
    if (index < answers.length - 1) worker = { ...worker, state: 'notified' };
  }
  return { worker, dueAtMs };
}

describe('a repeated probe', () => {
  it('ends the confirmation of a worker with its first failure, and keeps it otherwise', () => {
    const { worker } = play('w');
    assert.deepEqual(
      [worker.state, worker.confirmed, worker.probed],
      ['notified', 4, { wrong: 1, text: 'exit 1', wrongAtMs: 0 }],
    );
  });

  it('makes a worker pending with the third failure in a row', () => {
    assert.equal(play('ww').worker.state, 'notified');
    assert.equal(play('www').worker.state, 'pending');
    assert.equal(play('wwrww').worker.state, 'notified', 'not in a row');
  });

  it('never makes a worker pending that takes no notification', () => {
    const { worker, dueAtMs } = play('wwwwww', 30_000, false);
    assert.deepEqual([worker.state, worker.probed?.wrong, dueAtMs], ['notified', 6, []]);
  });

  it('without a verdict is a finding, which neither counts nor resets the count', () => {
    const { worker } = play('sss');
    assert.deepEqual([worker.state, worker.probed], ['confirmed', { wrong: 0, silence: 'timed out' }]);
    assert.equal(play('wsws').worker.state, 'notified');
    assert.equal(play('wswsw').worker.state, 'pending');
  });

  it('resets the count when it passes, except for the notifications of the generation', () => {
    const { worker } = play('ws' + 'r');
    assert.deepEqual(worker, { ...confirmed, text: 'its probe shows the generation', atMs: 60_000 });
    assert.deepEqual(play('wwwr').worker.probed, { wrong: 0, notices: 1, noticeAtMs: 60_000 });
    assert.deepEqual(afterPassedProbe(confirmed, 9), confirmed, 'nothing is new');
  });

  it('causes five notifications in a generation, with a growing gap', () => {
    const { dueAtMs, worker } = play('w'.repeat(200));
    const gaps = dueAtMs.slice(1).map((atMs, index) => (atMs - (dueAtMs[index] ?? 0)) / minuteMs);
    assert.deepEqual([dueAtMs[0], gaps], [minuteMs, [1, 2, 4, 8]]);
    assert.equal(worker.probed?.notices, 5);
    assert.deepEqual(play(`${'w'.repeat(200)}rwwww`).dueAtMs.length, 5, 'a right answer gives no new ones');
    assert.deepEqual(
      [1, 5, 7, 40].map((one) => noticeGapMs(one) / minuteMs),
      [1, 16, 60, 60],
    );
  });

  it('does not wait for a time that was recorded before the clock was set back', () => {
    const { worker } = play('www');
    const notified: WorkerLedger = { ...worker, state: 'notified' };
    const before = { text: 'exit 1', canBeNotified: true, nowMs: 0 } as const;
    assert.equal(afterFailedProbe(notified, before).state, 'pending');
  });

  it('covers workers that accepted the generation or are suspect, and no others', () => {
    const asked = (more: Partial<WorkerLedger>): boolean => isProbedAgain({ ...confirmed, ...more });
    const doubted = { probed: { wrong: 1 } };
    assert.deepEqual(
      [asked({}), asked({ state: 'notified' }), asked({ state: 'unreachable', ...doubted })],
      [true, true, true],
    );
    assert.deepEqual(
      [asked({ goneAtMs: 5, ...doubted }), asked({ state: 'pending' }), asked({ state: 'refused' })],
      [false, false, false],
    );
  });
});

describe('a failure within the least gap', () => {
  const counted = {
    ...confirmed,
    state: 'notified',
    probed: { wrong: 2, text: 'exit 1', wrongAtMs: 90_000 },
  } as const;
  const after = (nowMs: number, worker: WorkerLedger = counted) =>
    afterFailedProbe(worker, { text: 'exit 2', nowMs, canBeNotified: false, minGapMs: minuteMs });

  it('does not count, does not reset the count, and is reported', () => {
    const early = after(149_999);
    assert.deepEqual([early.state, early.text], ['notified', 'exit 2']);
    assert.deepEqual(early.probed, { wrong: 2, text: 'exit 2', wrongAtMs: 90_000 });
    assert.equal(after(150_000).probed?.wrong, 3);
  });

  it('counts as the first in a row, and after the clock was set back', () => {
    assert.equal(after(1, confirmed).probed?.wrong, 1);
    assert.equal(after(89_999).probed?.wrong, 3);
    const older = { ...counted, probed: { wrong: 2, text: 'exit 1' } };
    assert.equal(after(90_001, older).probed?.wrong, 3, 'a ledger of an older version');
  });

  it('counts for the second probe after a restore, which has a time of its own', () => {
    const second = { ...counted, secondProbe: { atMs: 90_001, wrong: 1 } };
    assert.equal(after(90_002, second).secondProbe?.wrong, 2);
  });
});
