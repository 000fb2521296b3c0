import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type GroupFacts,
  judgeByAgent,
  judgeGroup,
  type MemberFacts,
} from '../../../../src/agent/doctor/check-workers.js';

const alive = (worker: string): MemberFacts => ({ worker, liveness: 'alive', state: 'confirmed' });
const dead = (worker: string): MemberFacts => ({ worker, liveness: 'dead' });

describe('a group of workers', () => {
  const group: GroupFacts = { group: 'resolver', driver: 'kresd', min: 0, members: [alive('1'), alive('2')] };
  const cases: readonly (readonly [string, Partial<GroupFacts>, string, RegExp])[] = [
    ['with living workers', {}, 'ok', /2 workers, all alive$/],
    [
      'of unknown liveness',
      { members: [{ worker: '1', liveness: 'unknown' }] },
      'ok',
      /1 worker, liveness unknown/,
    ],
    ['with a dead one', { members: [alive('1'), dead('2')] }, 'warn', /1 of 2 dead: 2/],
    ['with dead workers only', { members: [dead('1'), dead('2')] }, 'FAIL', /2 of 2 dead/],
    [
      'with fewer living workers than required',
      { members: [alive('1'), dead('2')], min: 2 },
      'FAIL',
      /1 of 2 dead/,
    ],
    ['that is empty', { members: [] }, 'warn', /has no worker now/],
    ['that is empty and requires a worker', { members: [], min: 1 }, 'FAIL', /at least 1 wanted/],
    ['with too few', { min: 3 }, 'FAIL', /2 found, at least 3/],
    [
      'with a pending worker',
      { members: [alive('1'), { ...alive('2'), state: 'unreachable' }] },
      'warn',
      /1 of 2 not notified/,
    ],
    [
      'with too few, one of them pending',
      { members: [{ ...alive('1'), state: 'unreachable' }], min: 2 },
      'FAIL',
      /1 found, at least 2/,
    ],
    ['that cannot be listed', { unlisted: 'permission denied' }, 'FAIL', /permission denied/],
  ];
  for (const [what, facts, state, text] of cases) {
    it(`${what}: ${state}`, () => {
      const judged = judgeGroup({ ...group, ...facts });
      assert.equal(judged.state, state);
      assert.match(judged.text, text);
    });
  }

  it('names a few of many', () => {
    const members = Array.from({ length: 40 }, (_, index) => dead(`w${index}`));
    assert.match(judgeGroup({ ...group, members }).text, /w0, w1, w2, w3, w4, \.\.\.$/);
  });
});

describe('a group of workers, as a running agent knows it', () => {
  const group = { group: 'limits', workers: 2, confirmed: 2, min: 1, findings: [] } as const;
  const missing = { level: 'critical', code: 'WORKERS_MISSING', text: 'group limits has no worker' } as const;
  const slow = { level: 'warning', code: 'WORKER_UNREACHABLE', text: 'limits/w1: silent\nmore' } as const;
  const cases: readonly (readonly [string, Parameters<typeof judgeByAgent>, string])[] = [
    ['without findings', [group, { generation: 1 }], 'ok limits: 2 workers, 2 confirmed what is active'],
    [
      'with a missing worker',
      [{ ...group, workers: 0, findings: [missing] }, { generation: 1 }],
      'FAIL limits: group limits has no worker [WORKERS_MISSING]',
    ],
    [
      'with a finding',
      [{ ...group, findings: [slow] }, { generation: 1 }],
      'warn limits: limits/w1: silent [WORKER_UNREACHABLE]',
    ],
    [
      'that may be empty, and is',
      [{ ...group, workers: 0, min: 0 }, { generation: 1 }],
      'warn limits has no worker now',
    ],
    ['before the first policy', [group, {}], 'skip limits: no policy is active yet'],
  ];
  for (const [what, given, expected] of cases)
    it(`${what}: ${expected}`, () => {
      const findings = judgeByAgent(...given).map(({ state, text, code }) =>
        [state, text, ...(code === undefined ? [] : [`[${code}]`])].join(' '),
      );
      assert.deepEqual(findings, [expected]);
    });
});
