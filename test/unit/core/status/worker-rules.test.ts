// The decision about workers as a table: the facts, whether they are confirmed, and the findings.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  isConfirmed,
  judgeWorkers,
  type WorkerFacts,
  type WorkerGroupFacts,
} from '../../../../src/core/status/worker-rules.js';

const worker = (state: WorkerFacts['state'], more: Partial<WorkerFacts> = {}): WorkerFacts => {
  return { worker: 'a', state, text: 'a line', generation: 4, ...more };
};
const gone = (state: WorkerFacts['state'] = 'confirmed'): WorkerFacts => worker(state, { goneAtMs: 1 });
const group = (workers: readonly WorkerFacts[], more: Partial<WorkerGroupFacts> = {}): WorkerGroupFacts => {
  return { group: 'ns', min: 1, confirm: 'warn', hasProbe: false, workers, ...more };
};

const suspect = (name: string): WorkerFacts =>
  worker('notified', { worker: name, probed: { wrong: 1, text: 'ns: exit 1' } });

type ExpectedFinding = readonly [code: string, effect: 'degraded' | 'warning', level: 'critical' | 'warning'];
type Row = readonly [
  name: string,
  groups: readonly WorkerGroupFacts[],
  confirmed: boolean,
  findings: readonly ExpectedFinding[],
];

const missing: ExpectedFinding = ['WORKERS_MISSING', 'degraded', 'warning'];
const unreachable: ExpectedFinding = ['WORKER_UNREACHABLE', 'degraded', 'warning'];

const rows: readonly Row[] = [
  ['without any group', [], false, []],
  ['with a confirmed group', [group([worker('confirmed')])], true, []],
  [
    'with a group that never had a worker: a typo in a glob, a daemon that is not started',
    [group([])],
    false,
    [missing],
  ],
  ['with a group that never had a worker and requires none', [group([], { min: 0 })], false, []],
  ['after the only worker ended', [group([gone()])], false, [['WORKERS_MISSING', 'degraded', 'critical']]],
  [
    'after the only worker of a group that requires none ended',
    [group([gone()], { min: 0 })],
    false,
    [['WORKERS_MISSING', 'warning', 'warning']],
  ],
  [
    'after one of two workers ended, if one is required',
    [group([worker('confirmed'), gone()])],
    true,
    [['WORKERS_MISSING', 'warning', 'warning']],
  ],
  [
    'after one of two workers ended, if two are required',
    [group([worker('confirmed'), gone()], { min: 2 })],
    false,
    [missing],
  ],
  ['with one worker, if two are required', [group([worker('confirmed')], { min: 2 })], false, [missing]],
  [
    'with a notified worker that a probe could confirm',
    [group([worker('notified')])],
    false,
    [['WORKER_UNCONFIRMED', 'warning', 'warning']],
  ],
  [
    'with a notified worker, if confirmation is required',
    [group([worker('notified')], { confirm: 'required' })],
    false,
    [['WORKER_UNCONFIRMED', 'degraded', 'warning']],
  ],
  [
    'with a notified worker, if a notification is accepted',
    [group([worker('notified')], { confirm: 'accept' })],
    false,
    [],
  ],
  ['with an unreachable worker', [group([worker('unreachable')])], false, [unreachable]],
  [
    'with a dead worker and no other',
    [group([worker('unreachable', { isDead: true })])],
    false,
    [['WORKERS_MISSING', 'degraded', 'critical']],
  ],
  [
    'with one dead worker of two',
    [group([worker('unreachable', { isDead: true }), worker('confirmed')])],
    false,
    [['WORKERS_MISSING', 'degraded', 'warning']],
  ],
  [
    'with a worker that is alive and has been unreachable since a release',
    [group([worker('unreachable', { isLost: true })])],
    false,
    [['WORKER_LOST_AFTER', 'degraded', 'critical']],
  ],
  ['with a worker that has just appeared', [group([worker('pending')])], false, [unreachable]],
  [
    'with a suspect worker, if a notification is accepted',
    [group([worker('notified', { probed: { wrong: 1, text: 'ns: exit 1' } })], { confirm: 'accept' })],
    false,
    [['PROBE_CHANGED', 'degraded', 'warning']],
  ],
  [
    'with one wrong probe for two workers',
    [group([suspect('a'), suspect('b')])],
    false,
    [['PROBE_CHANGED', 'degraded', 'warning']],
  ],
  [
    'with a suspect worker after the last notification that its probe may cause',
    [group([worker('notified', { probed: { wrong: 9, text: 'ns: exit 1', notices: 5 } })])],
    false,
    [['PROBE_CHANGED', 'degraded', 'critical']],
  ],
  [
    'with a suspect worker before its last notification',
    [group([worker('pending', { probed: { wrong: 9, text: 'ns: exit 1', notices: 5 } })])],
    false,
    [['PROBE_CHANGED', 'degraded', 'warning']],
  ],
  [
    'with a suspect worker that is unreachable',
    [group([worker('unreachable', { probed: { wrong: 4, text: 'ns: exit 1', notices: 1 } })])],
    false,
    [unreachable, ['PROBE_CHANGED', 'degraded', 'warning']],
  ],
  [
    'with an unloaded group without workers',
    [group([], { min: 0, isUnloaded: true }), group([worker('confirmed')], { group: 'app' })],
    false,
    [unreachable],
  ],
  [
    'with an unloaded group and an unreachable worker',
    [group([worker('unreachable')], { isUnloaded: true })],
    false,
    [unreachable],
  ],
  [
    'with a silent canary and a confirmed worker',
    [group([worker('confirmed')], { canarySilence: 'ns: its canary: exit 1' })],
    true,
    [['CANARY_SILENT', 'warning', 'warning']],
  ],
  [
    'with a silent probe of a confirmed worker',
    [group([worker('confirmed', { probed: { wrong: 0, silence: 'ns: timed out' } })])],
    true,
    [['PROBE_SILENT', 'warning', 'warning']],
  ],
  [
    'with a departed worker that was suspect',
    [group([{ ...suspect('a'), goneAtMs: 1 }, worker('confirmed')])],
    true,
    [['WORKERS_MISSING', 'warning', 'warning']],
  ],
  [
    'with a worker that refused',
    [group([worker('refused')])],
    false,
    [['WORKER_REFUSED', 'degraded', 'warning']],
  ],
  [
    'with a group without a member list, although a worker was confirmed',
    [group([worker('confirmed')], { listFailure: { text: 'EACCES', sinceMs: 1 } })],
    false,
    [unreachable],
  ],
  [
    'with a confirmed group and an empty one that requires no worker',
    [group([worker('confirmed')]), group([], { group: 'batch', min: 0 })],
    true,
    [],
  ],
  [
    'with a confirmed group and one that lacks workers',
    [group([worker('confirmed')]), group([], { group: 'b' })],
    false,
    [missing],
  ],
];

describe('the judgement of workers', () => {
  for (const [name, groups, confirmed, findings] of rows) {
    it(name, () => {
      assert.equal(isConfirmed(groups), confirmed);
      assert.deepEqual(
        judgeWorkers(groups).map(({ code, effect, level }): ExpectedFinding => [code, effect, level]),
        findings,
      );
    });
  }

  it('suggests a probe for a group without one', () => {
    const text = (hasProbe: boolean): string | undefined =>
      judgeWorkers([group([worker('notified')], { hasProbe })])[0]?.text;
    assert.match(text(false) ?? '', /a `probe` would show/);
    assert.match(text(true) ?? '', /its probe has not shown it/);
  });
});
