// The one rule of the workers as a table: what is known on the left, what may be said on the right.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type GroupFacts,
  isConfirmed,
  judgeWorkers,
  type WorkerFacts,
} from '../../../../src/core/status/worker-rules.js';

const worker = (state: WorkerFacts['state'], more: Partial<WorkerFacts> = {}): WorkerFacts => {
  return { worker: 'a', state, text: 'its words', generation: 4, ...more };
};
const gone = (state: WorkerFacts['state'] = 'confirmed'): WorkerFacts => worker(state, { goneAtMs: 1 });
const group = (workers: readonly WorkerFacts[], more: Partial<GroupFacts> = {}): GroupFacts => {
  return { group: 'ns', min: 1, confirm: 'warn', hasProbe: 'no', workers, ...more };
};

const doubted = (name: string): WorkerFacts =>
  worker('notified', { worker: name, probed: { wrong: 1, text: 'ns: exit 1' } });

type Said = readonly [code: string, effect: 'degraded' | 'warning', level: 'critical' | 'warning'];
type Row = readonly [
  name: string,
  groups: readonly GroupFacts[],
  confirmed: boolean,
  findings: readonly Said[],
];

const missing: Said = ['WORKERS_MISSING', 'degraded', 'warning'];
const unreachable: Said = ['WORKER_UNREACHABLE', 'degraded', 'warning'];

const rows: readonly Row[] = [
  ['no group at all', [], false, []],
  ['a group that proved it', [group([worker('confirmed')])], true, []],
  ['nobody was ever there: a typo in a glob, a daemon that is not up', [group([])], false, [missing]],
  ['nobody was ever there, and nobody must be', [group([], { min: 0 })], false, []],
  ['the only one ended', [group([gone()])], false, [['WORKERS_MISSING', 'degraded', 'critical']]],
  [
    'the only one ended, and nobody must be there',
    [group([gone()], { min: 0 })],
    false,
    [['WORKERS_MISSING', 'warning', 'warning']],
  ],
  [
    'one of two ended, and one is enough',
    [group([worker('confirmed'), gone()])],
    true,
    [['WORKERS_MISSING', 'warning', 'warning']],
  ],
  [
    'one of two ended, and two must be there',
    [group([worker('confirmed'), gone()], { min: 2 })],
    false,
    [missing],
  ],
  ['one is there, and two must be', [group([worker('confirmed')], { min: 2 })], false, [missing]],
  [
    'it was told, and a probe would show it',
    [group([worker('notified')])],
    false,
    [['WORKER_UNCONFIRMED', 'warning', 'warning']],
  ],
  [
    'it was told, and must prove it',
    [group([worker('notified')], { confirm: 'required' })],
    false,
    [['WORKER_UNCONFIRMED', 'degraded', 'warning']],
  ],
  ['it was told, and that is accepted', [group([worker('notified')], { confirm: 'accept' })], false, []],
  ['it could not be reached', [group([worker('unreachable')])], false, [unreachable]],
  [
    'its process is dead, and so is the whole group',
    [group([worker('unreachable', { isDead: 'yes' })])],
    false,
    [['WORKERS_MISSING', 'degraded', 'critical']],
  ],
  [
    'one of two is dead',
    [group([worker('unreachable', { isDead: 'yes' }), worker('confirmed')])],
    false,
    [['WORKERS_MISSING', 'degraded', 'warning']],
  ],
  [
    'it lives, and answers nobody since a release',
    [group([worker('unreachable', { isLost: 'yes' })])],
    false,
    [['WORKER_LOST_AFTER', 'degraded', 'critical']],
  ],
  ['it has just appeared', [group([worker('pending')])], false, [unreachable]],
  [
    'its probe failed by now, though nobody asks for proofs',
    [group([worker('notified', { probed: { wrong: 1, text: 'ns: exit 1' } })], { confirm: 'accept' })],
    false,
    [['PROBE_CHANGED', 'degraded', 'warning']],
  ],
  [
    'one question was about two of them',
    [group([doubted('a'), doubted('b')])],
    false,
    [['PROBE_CHANGED', 'degraded', 'warning']],
  ],
  [
    'its probe failed whatever it is told',
    [group([worker('notified', { probed: { wrong: 9, text: 'ns: exit 1', notices: 5 } })])],
    false,
    [['PROBE_CHANGED', 'degraded', 'critical']],
  ],
  [
    'its probe failed, and its last notification is on its way',
    [group([worker('pending', { probed: { wrong: 9, text: 'ns: exit 1', notices: 5 } })])],
    false,
    [['PROBE_CHANGED', 'degraded', 'warning']],
  ],
  [
    'its probe failed, and it could not be notified because of it',
    [group([worker('unreachable', { probed: { wrong: 4, text: 'ns: exit 1', notices: 1 } })])],
    false,
    [unreachable, ['PROBE_CHANGED', 'degraded', 'warning']],
  ],
  [
    'its loader reached nobody, and nobody is there who would say so',
    [group([], { min: 0, isUnloaded: 'yes' }), group([worker('confirmed')], { group: 'app' })],
    false,
    [unreachable],
  ],
  [
    'its loader reached nobody, as each of them says',
    [group([worker('unreachable')], { isUnloaded: 'yes' })],
    false,
    [unreachable],
  ],
  [
    'its canary reached nobody, and it proved the policy itself',
    [group([worker('confirmed')], { canarySilence: 'ns: its canary: exit 1' })],
    true,
    [['CANARY_SILENT', 'warning', 'warning']],
  ],
  [
    'its probe gave no verdict since it proved it',
    [group([worker('confirmed', { probed: { wrong: 0, silence: 'ns: timed out' } })])],
    true,
    [['PROBE_SILENT', 'warning', 'warning']],
  ],
  [
    'its probe said no before it ended',
    [group([{ ...doubted('a'), goneAtMs: 1 }, worker('confirmed')])],
    true,
    [['WORKERS_MISSING', 'warning', 'warning']],
  ],
  ['it said no', [group([worker('refused')])], false, [['WORKER_REFUSED', 'degraded', 'warning']]],
  [
    'nobody can say who they are, and those that were known are no news',
    [group([worker('confirmed')], { unread: { text: 'EACCES', sinceMs: 1 } })],
    false,
    [unreachable],
  ],
  [
    'one group proved it, another one may be empty',
    [group([worker('confirmed')]), group([], { group: 'batch', min: 0 })],
    true,
    [],
  ],
  [
    'one group proved it, another one has nobody',
    [group([worker('confirmed')]), group([], { group: 'b' })],
    false,
    [missing],
  ],
];

describe('what may be said of workers', () => {
  for (const [name, groups, confirmed, findings] of rows) {
    it(name, () => {
      assert.equal(isConfirmed(groups), confirmed);
      assert.deepEqual(
        judgeWorkers(groups).map(({ code, effect, level }): Said => [code, effect, level]),
        findings,
      );
    });
  }

  it('names a probe that would show it, where there is none', () => {
    const text = (hasProbe: 'yes' | 'no'): string | undefined =>
      judgeWorkers([group([worker('notified')], { hasProbe })])[0]?.text;
    assert.match(text('no') ?? '', /a `probe` would show/);
    assert.match(text('yes') ?? '', /its probe has not shown it/);
  });
});
