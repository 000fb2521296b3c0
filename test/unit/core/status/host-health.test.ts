import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeHostHealth } from '../../../../src/core/status/host-health.js';
import type { StatusReport } from '../../../../src/core/status/status.js';
import { problem, startedAtMs } from '../../../kit/cli/cycle-results.js';
import { statusReport } from '../../../kit/cli/status-reports.js';

const dayMs = 86_400_000;
const atMs = statusReport().atMs;
const attempt = { sinceMs: startedAtMs, atMs: startedAtMs, times: 3 } as const;

function without(key: keyof StatusReport, report = statusReport()): StatusReport {
  const { [key]: _, ...rest } = report;
  return rest as StatusReport;
}

function trust(role: string, leftMs: number, validityMs?: number): Partial<StatusReport> {
  const signed = validityMs === undefined ? {} : { signedAtMs: atMs + leftMs - validityMs };
  return { trust: [{ role, version: 1, expiresAtMs: atMs + leftMs, ...signed }] };
}

function groupWith(
  code: 'WORKER_UNREACHABLE' | 'WORKER_REFUSED' | 'WORKERS_MISSING',
  level: 'warning' | 'critical' = 'warning',
): NonNullable<StatusReport['groups']>[number] {
  return { group: 'resolver', workers: 2, confirmed: 1, min: 1, findings: [{ level, code, text: 'a line' }] };
}

type Row = readonly [name: string, report: StatusReport, level: string, codes: readonly string[]];

const rows: readonly Row[] = [
  ['a host without problems', statusReport(), 'ok', []],
  [
    'a release that was rolled back, and later polls without a change',
    statusReport({
      last: { cycle: 'c-2', trigger: 'poll', outcome: 'unchanged', atMs },
      refusals: [
        {
          ...{ bundle: 'dns-edge', channel: 'stable', serial: 42, code: 'WORKER_REFUSED', reason: 'no' },
          ...{ atMs, retryAtMs: atMs },
        },
      ],
    }),
    'warning',
    ['REMEMBERED_REFUSAL'],
  ],
  [
    'a worker that ended within the bake time of a release',
    statusReport({
      bundles: statusReport().bundles.map((one) => ({
        ...one,
        bake: {
          state: 'baking',
          leftMs: 300_000,
          ends: [{ worker: 'resolver/kresd@1', abnormal: 1, unexplained: 0 }],
        },
      })),
    }),
    'warning',
    ['WORKER_RESTARTED', 'WORKER_RESTARTED'],
  ],
  [
    'a release that failed within its bake time and could not be rolled back',
    statusReport({ problems: [problem('BAKE_FAILED', 'dns-edge 42 failed')] }),
    'critical',
    ['BAKE_FAILED'],
  ],
  [
    'a check that deferred the release',
    statusReport({
      last: { cycle: 'c-2', trigger: 'poll', outcome: 'deferred', atMs },
      problems: [problem('CHECK_DEFERRED', 'not now')],
    }),
    'ok',
    [],
  ],
  [
    'a pause until a time',
    statusReport({ pause: { by: 'anna', reason: 'freeze', atMs, untilMs: atMs + dayMs } }),
    'ok',
    [],
  ],
  [
    'a pause without an end',
    statusReport({ pause: { by: 'anna', reason: 'freeze', atMs } }),
    'warning',
    ['ACTIVATION_PAUSED'],
  ],
  [
    'a hold of an offered release',
    statusReport({ holds: [{ bundle: 'access', serial: 10, by: 'anna', atMs }] }),
    'warning',
    ['RELEASE_HELD'],
  ],
  [
    'a hold of a release that is not offered any more',
    statusReport({ holds: [{ bundle: 'access', serial: 9, by: 'anna', atMs }] }),
    'ok',
    [],
  ],
  [
    'a cycle that failed because of this host',
    statusReport({
      last: { cycle: 'c-2', trigger: 'poll', outcome: 'failed', atMs },
      problems: [problem('DISK_FULL', 'full')],
    }),
    'warning',
    ['DISK_FULL'],
  ],
  ['no active generation', without('generation'), 'critical', ['NOTHING_ACTIVE']],
  [
    'a block',
    statusReport({ problems: [problem('ACTIVATION_BLOCKED', 'x')] }),
    'critical',
    ['ACTIVATION_BLOCKED'],
  ],
  [
    'an untrusted active release',
    statusReport({ problems: [problem('UNTRUSTED_ACTIVE', 'x')] }),
    'critical',
    ['UNTRUSTED_ACTIVE'],
  ],
  [
    'policy older than maxStale',
    statusReport({ freshness: { state: 'stale' }, problems: [problem('POLICY_STALE', 'x')] }),
    'critical',
    ['POLICY_STALE', 'STALE'],
  ],
  ['damage', statusReport({ problems: [problem('STATE_DAMAGED', 'x')] }), 'critical', ['STATE_DAMAGED']],
  [
    'one missed poll',
    statusReport({
      freshness: { state: 'fresh', failing: { ...attempt, code: 'SERVER_UNREACHABLE' } },
      problems: [problem('SERVER_UNREACHABLE', 'x')],
    }),
    'ok',
    [],
  ],
  ['staleness', statusReport({ freshness: { state: 'stale' } }), 'warning', ['STALE']],
  [
    'a freeze',
    statusReport({
      freshness: { state: 'frozen' },
      problems: [problem('METADATA_EXPIRED', 'timestamp version 3 expired')],
    }),
    'warning',
    ['METADATA_EXPIRED', 'FROZEN'],
  ],
  [
    'refused metadata, and an unreachable server since',
    statusReport({
      freshness: { state: 'refused', refused: { ...attempt, code: 'METADATA_MIX' } },
      problems: [problem('SERVER_BUSY', 'x')],
    }),
    'warning',
    ['REFUSED'],
  ],
  [
    'a clock that is behind',
    statusReport({ problems: [problem('CLOCK_BEHIND', 'x')] }),
    'warning',
    ['CLOCK_BEHIND'],
  ],
  [
    'a refused bundle',
    statusReport({
      refusals: [
        {
          bundle: 'dns-edge',
          channel: 'stable',
          serial: 43,
          code: 'CHECK_FAILED',
          reason: '',
          atMs: 1,
          retryAtMs: 2,
        },
      ],
      problems: [problem('REMEMBERED_REFUSAL', 'x')],
    }),
    'warning',
    ['REMEMBERED_REFUSAL'],
  ],
  [
    'workers that were not notified',
    statusReport({ groups: [groupWith('WORKER_UNREACHABLE')] }),
    'warning',
    ['WORKER_UNREACHABLE'],
  ],
  [
    'workers that refused',
    statusReport({ groups: [groupWith('WORKER_REFUSED')] }),
    'warning',
    ['WORKER_REFUSED'],
  ],
  [
    'a group without a worker',
    statusReport({ groups: [groupWith('WORKERS_MISSING', 'critical')] }),
    'critical',
    ['WORKERS_MISSING'],
  ],
  ['a full disk', statusReport({ problems: [problem('DISK_FULL', 'x')] }), 'warning', ['DISK_FULL']],
  ['a hold that an operator requested', statusReport({ problems: [problem('RELEASE_HELD', 'x')] }), 'ok', []],
  ['no agent', statusReport({ agent: 'stop' }), 'warning', ['NO_AGENT']],
  ['a root near its expiry', statusReport(trust('root', 13 * dayMs)), 'warning', ['EXPIRES_SOON']],
  [
    'an expired root, which is reported as frozen',
    statusReport({ ...trust('root', 0), freshness: { state: 'frozen' } }),
    'warning',
    ['FROZEN'],
  ],
  ['a root that expires later', statusReport(trust('root', 15 * dayMs)), 'ok', []],
  ['a snapshot near its expiry', statusReport(trust('snapshot', 2 * dayMs)), 'warning', ['EXPIRES_SOON']],
  ['a timestamp near its expiry', statusReport(trust('timestamp', 0.9 * dayMs)), 'warning', ['EXPIRES_SOON']],
  ['a new timestamp that is valid for a day', statusReport(trust('timestamp', 0.9 * dayMs, dayMs)), 'ok', []],
  [
    'the same timestamp near its expiry',
    statusReport(trust('timestamp', 0.2 * dayMs, dayMs)),
    'warning',
    ['EXPIRES_SOON'],
  ],
];

describe('the health of a host', () => {
  for (const [name, report, level, codes] of rows) {
    it(`is ${level}: ${name}`, () => {
      const health = judgeHostHealth(report);
      assert.deepEqual([health.level, health.findings.map((one) => one.code)], [level, codes]);
    });
  }

  it('lists critical findings first, and each finding once', () => {
    const { findings, level } = judgeHostHealth(
      statusReport({
        agent: 'stop',
        problems: [problem('DISK_FULL', 'a'), problem('DISK_FULL', 'a'), problem('UNTRUSTED_ACTIVE', 'b')],
      }),
    );
    assert.equal(level, 'critical');
    assert.deepEqual(
      findings.map((one) => one.code),
      ['UNTRUSTED_ACTIVE', 'DISK_FULL', 'NO_AGENT'],
    );
  });

  it('counts the refusals if there are several', () => {
    const text = (times: number) => {
      const refused = { ...attempt, code: 'SIGNATURE_WRONG_KEY', times } as const;
      const report = statusReport({ freshness: { state: 'refused', refused } });
      return judgeHostHealth(report).findings.map((one) => one.text);
    };
    assert.deepEqual(text(1), ['metadata is refused (SIGNATURE_WRONG_KEY)']);
    assert.deepEqual(text(3), ['metadata is refused (3 times SIGNATURE_WRONG_KEY)']);
  });
});
