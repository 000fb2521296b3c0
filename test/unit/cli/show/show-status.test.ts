import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { showStatus, statusLabel } from '../../../../src/cli/show/show-status.js';
import type { BundleStatus, StatusReport } from '../../../../src/core/protocol/control-protocol.js';
import type { BakeStatus } from '../../../../src/core/status/status.js';
import { refusesAllText, unknownAnswerText } from '../../../../src/core/status/worker-rules.js';
import { matchesFile } from '../../../kit/assert/golden.js';
import { blockText } from '../../../kit/cli/block-text.js';
import { problem, startedAtMs } from '../../../kit/cli/cycle-results.js';
import { statusReport, workerStatus } from '../../../kit/cli/status-reports.js';

function emptyHost(): StatusReport {
  const {
    generation: _none,
    activatedAtMs: _never,
    last: _no,
    nextPollAtMs: _poll,
    ...rest
  } = statusReport();
  return {
    ...rest,
    confirmed: false,
    bundles: [{ bundle: 'dns-edge', channel: 'stable' }],
    workers: [],
    freshness: { state: 'stale' },
    trust: [],
  };
}

const downloading = { doneBytes: 12_000_000, totalBytes: 40_000_000 };

const cases: Readonly<Record<string, readonly [label: string, report: StatusReport]>> = {
  active: ['active', statusReport()],
  'first-download': ['empty', { ...emptyHost(), downloading }],
  'repaired-on-disk': [
    'active',
    statusReport({
      scrub: {
        atMs: startedAtMs - 600_000,
        outcome: 'repaired',
        found: 2,
        damage: [],
        counts: { looks: 9, damaged: 1, repaired: 1, failed: 0 },
      },
    }),
  ],
  mirrors: [
    'active',
    statusReport({
      mirrors: [
        {
          url: 'https://policy.example.net/',
          state: 'failed',
          code: 'SIGNATURE_WRONG_KEY',
          sinceMs: startedAtMs - 7_200_000,
        },
        { url: 'https://mirror.example.org/', state: 'used' },
        { url: 'file:///media/usb/', state: 'idle' },
      ],
    }),
  ],
  'kept-for-holders': [
    'active',
    statusReport({
      held: [
        {
          generation: 3,
          bundle: 'dns-edge',
          what: 'mount',
          path: '/srv/jail/policy',
          pid: 4711,
          command: 'named',
          sinceMs: startedAtMs - 7_200_000,
        },
        { generation: 5, what: 'mount', path: '/mnt', sinceMs: startedAtMs },
        { generation: 5, what: 'cwd', path: '/p/5', pid: 9, command: 'e\u001b[31mvil', sinceMs: startedAtMs },
        { bundle: 'access', what: 'open', path: '/p/a', pid: 10, command: 'cat', sinceMs: startedAtMs },
      ],
    }),
  ],
  unconfirmed: ['active', statusReport({ confirmed: false, workers: [workerStatus('1234', 'notified')] })],
  degraded: [
    'degraded',
    statusReport({
      confirmed: false,
      workers: [workerStatus('kresd@1', 'confirmed'), workerStatus('kresd@2', 'unreachable')],
      problems: [
        {
          ...problem(
            'WORKER_UNREACHABLE',
            'kresd@2: connection refused on control/2\nThis process still answers from generation 17.',
          ),
          hint: 'systemctl status kresd@2',
        },
      ],
    }),
  ],
  waiting: [
    'active',
    statusReport({
      waiting: [
        { bundle: 'access', serial: 10, groups: ['resolver'], untilMs: Date.UTC(2026, 10, 21, 14, 40) },
      ],
    }),
  ],
  pending: [
    'degraded',
    statusReport({
      workers: [
        workerStatus('kresd@1', 'unreachable', {
          tries: 3,
          nextNotificationAtMs: Date.UTC(2026, 10, 21, 14, 33, 6),
          text: 'ECONNREFUSED',
        }),
        workerStatus('kresd@2', 'pending'),
      ],
    }),
  ],
  paused: [
    'active',
    statusReport({
      pause: {
        by: 'anna',
        reason: 'change freeze, ticket 4711',
        atMs: Date.UTC(2026, 10, 21, 12),
        untilMs: Date.UTC(2026, 10, 21, 18),
      },
    }),
  ],
  'refused-and-held': [
    'active',
    statusReport({
      workers: [workerStatus('kresd@3', 'pending', { goneAtMs: Date.UTC(2026, 10, 21, 14, 32, 6) })],
      bundles: [
        { ...statusReport().bundles[0]!, server: { serial: 43, revision: 'b' } },
        { ...statusReport().bundles[1]!, server: { serial: 10, revision: 'v1.4' } },
      ],
      refusals: [
        {
          bundle: 'dns-edge',
          channel: 'stable',
          serial: 43,
          code: 'CHECK_FAILED',
          reason: 'zones parse (exit 1)\nblock.rpz:214: invalid IPv4 address',
          atMs: startedAtMs,
          retryAtMs: startedAtMs + 3_600_000,
        },
      ],
      holds: [{ bundle: 'access', serial: 10, by: 'anna', atMs: startedAtMs, reason: 'locks out ben' }],
    }),
  ],
  'never-verified': [
    'alarm',
    {
      ...emptyHost(),
      freshness: {
        state: 'refused',
        lastContactAtMs: startedAtMs,
        refused: {
          ...{ code: 'SIGNATURE_WRONG_KEY', role: 'timestamp', times: 1 },
          ...{ sinceMs: startedAtMs, atMs: startedAtMs },
        },
      },
      trust: [{ role: 'root', version: 1, expiresAtMs: startedAtMs + 31_536_000_000 }],
    },
  ],
  frozen: [
    'frozen',
    statusReport({
      freshness: {
        state: 'frozen',
        lastContactAtMs: startedAtMs,
        ageMs: 86_400_000,
        sinceMs: startedAtMs,
        expired: { role: 'timestamp', version: 1310, expiresAtMs: startedAtMs },
        failing: {
          code: 'METADATA_EXPIRED',
          role: 'timestamp',
          sinceMs: startedAtMs,
          atMs: startedAtMs,
          times: 1,
        },
      },
      trust: [{ role: 'timestamp', version: 1310, expiresAtMs: startedAtMs }],
      problems: [problem('METADATA_EXPIRED', 'timestamp v1310 has expired')],
    }),
  ],
  alarm: [
    'alarm',
    statusReport({
      freshness: {
        state: 'refused',
        lastContactAtMs: startedAtMs,
        verifiedAtMs: startedAtMs - 7_200_000,
        ageMs: 7_240_000,
        sinceMs: startedAtMs - 600_000,
        failing: {
          code: 'SERVER_UNREACHABLE',
          sinceMs: startedAtMs - 600_000,
          atMs: startedAtMs,
          times: 3,
        },
        refused: {
          code: 'SIGNATURE_THRESHOLD',
          role: 'timestamp',
          sinceMs: startedAtMs - 600_000,
          atMs: startedAtMs - 300_000,
          times: 2,
        },
      },
    }),
  ],
  stale: [
    'stale',
    statusReport({
      freshness: {
        state: 'stale',
        lastContactAtMs: startedAtMs - 7_200_000,
        ageMs: 7_240_000,
        sinceMs: startedAtMs - 6_300_000,
        overdueSinceMs: startedAtMs - 3_600_000,
        failing: {
          code: 'SERVER_UNREACHABLE',
          sinceMs: startedAtMs - 6_900_000,
          atMs: startedAtMs,
          times: 23,
        },
      },
      clock: { floorMs: startedAtMs + 3_600_000, behindMs: 3_560_000 },
    }),
  ],
  blocked: [
    'blocked',
    statusReport({
      problems: [problem('ACTIVATION_BLOCKED', '3 starts behind generation 19 did not reach its end')],
    }),
  ],
  empty: ['empty', emptyHost()],
  stopped: ['stopped', statusReport({ agent: 'stop' })],
};

describe('the undo command of a status', () => {
  const held = { bundle: 'dns-edge', serial: 42, by: 'anna', atMs: startedAtMs };
  const [bundle] = statusReport().bundles;
  const offers = (serial: number) => [{ ...bundle!, server: { serial, revision: '' } }];
  const refusal = { ...held, channel: 'stable', code: 'CHECK_FAILED', reason: '', retryAtMs: startedAtMs };
  const undoOf = (more: Partial<StatusReport>) => showStatus(statusReport({ holds: [held], ...more })).undo;

  it('is the end of the hold only when that would reactivate the release', () => {
    assert.equal(undoOf({ bundles: offers(42) }), 'writ resume');
    assert.equal(undoOf({ bundles: offers(43), refusals: [{ ...refusal, serial: 43 }] }), undefined);
    assert.equal(undoOf({ bundles: offers(42), refusals: [refusal] }), undefined);
  });
});

describe('the status of a host', () => {
  for (const [name, [label, report]] of Object.entries(cases)) {
    it(`matches its golden file: ${name}`, () => {
      assert.equal(statusLabel(report), label);
      matchesFile(`test/golden/status/${name}.txt`, blockText(showStatus(report)));
    });
  }

  it('names the release that an offered one corrects', () => {
    const [bundle] = statusReport().bundles;
    const offered = { ...bundle!, server: { serial: 43, revision: '', fixes: 42 } };
    const { lines } = showStatus(statusReport({ bundles: [offered] }));
    assert.ok(lines.some((line) => line.endsWith('43, fixes 42')));
  });

  it('is damaged and never active when the policy on disk is damaged, with or without an agent', () => {
    const problems = [problem('STATE_DAMAGED', 'dns-edge: block.rpz changed on disk')];
    assert.equal(statusLabel(statusReport({ problems })), 'damaged');
    for (const agent of ['run', 'stop'] as const) {
      const [head = ''] = showStatus(statusReport({ problems, agent })).lines;
      assert.match(head, /generation 18 is active, and the policy on disk is damaged/);
    }
  });

  it('prints the warnings of health beside the problems', () => {
    const finding = { level: 'warning', code: 'PROBE_SILENT', text: 'dns: its probe timed out' } as const;
    const counts = { group: 'dns', workers: 1, confirmed: 1, min: 1 };
    const { lines } = showStatus(statusReport({ groups: [{ ...counts, findings: [finding] }] }));
    assert.ok(lines.includes('  warning   dns: its probe timed out [PROBE_SILENT]'));
  });

  it('counts refusals of releases that are tried no more in one line', () => {
    const { lines } = showStatus(statusReport({ olderRefusals: 3 }));
    assert.deepEqual(
      lines.filter((line) => line.includes('refus')),
      ['  history   3 older refusals: writ refusals'],
    );
  });

  it('counts workers that refused apart from workers that were not notified', () => {
    const refusesAll = workerStatus('c', 'unreachable', { text: `${refusesAllText}busy` });
    const workers = [workerStatus('a', 'refused'), workerStatus('b', 'unreachable'), refusesAll];
    const sentenceOf = (some: typeof workers) => showStatus(statusReport({ workers: some })).lines[0] ?? '';
    assert.match(sentenceOf(workers), /, 2 of 3 workers refused, 1 of 3 workers not notified /);
    assert.match(sentenceOf([refusesAll]), /active, 1 of 1 worker refused /);
  });

  it('shows that the answer to a notification is not known', () => {
    const workers = [workerStatus('a', 'pending', { text: unknownAnswerText })];
    const { lines } = showStatus(statusReport({ workers }));
    assert.ok(lines.some((line) => line.includes('no answer known since a notification at ')));
  });

  it('is active again after the workers that the last cycle missed were notified', () => {
    const last = { ...statusReport().last!, outcome: 'degraded' } as const;
    assert.equal(statusLabel(statusReport({ last })), 'active');
    const problems = [problem('WORKER_UNCONFIRMED', 'no worker confirmed it')];
    assert.equal(statusLabel(statusReport({ last, problems })), 'degraded');
  });

  it('is degraded when a release is left out after silent workers, as a pull reports it', () => {
    const problems = [problem('SILENT_REFUSAL', 'dns-edge 43 was taken back 3 times')];
    assert.equal(statusLabel(statusReport({ problems })), 'degraded');
  });

  it('counts the entries that were omitted from the report', () => {
    const { lines } = showStatus({ ...statusReport(), truncated: { workers: 120 } });
    assert.equal(lines.at(-1), '  (120 more workers are not shown)');
  });

  it('names the next pull and no time for the next notification when no agent runs', () => {
    const tried = { tries: 3, nextNotificationAtMs: Date.UTC(2026, 10, 21, 14, 33, 6) };
    const workers = [workerStatus('kresd@1', 'unreachable', { ...tried, text: 'ECONNREFUSED' })];
    const lineOf = (agent: 'run' | 'stop') => showStatus(statusReport({ agent, workers })).lines.join('\n');
    assert.match(lineOf('run'), /next poll in/);
    assert.doesNotMatch(lineOf('stop'), /next poll in/);
    assert.match(lineOf('stop'), /3 notifications without an answer, again at the next pull: ECONNREFUSED/);
    assert.match(lineOf('run'), /without an answer, again at 2026-11-21 14:33:06 UTC: ECONNREFUSED/);
  });

  it('prints the state of the agent while it starts or stops', () => {
    assert.match(showStatus(statusReport({ agent: 'init' })).lines[0] ?? '', /\(agent: init\)/);
  });
});

describe('a release that waits after failures of others', () => {
  const gap = problem(
    'BAKE_GAP',
    'dns-edge 43 waits until 2026-11-21 15:00:00 UTC: 2 releases were taken back',
  );

  it('is shown as waiting and not as a problem, as health is OK with it', () => {
    const { lines } = showStatus(statusReport({ problems: [gap] }));
    assert.ok(lines.includes(`  waits     ${gap.message} [BAKE_GAP]`));
    assert.ok(!lines.some((line) => / problem/.test(line)), lines.join('\n'));
  });

  it('is not counted among the problems of the host', () => {
    const full = problem('DISK_FULL', 'no room');
    const { lines } = showStatus(statusReport({ problems: [gap, full] }));
    assert.ok(lines.includes('1 problem'));
  });
});

describe('the bake time in a status', () => {
  const shown = (bake: BakeStatus, more: Partial<BundleStatus> = {}): string => {
    const bundles = [{ bundle: 'dns-edge', channel: 'stable', serial: 42, bake, ...more }];
    return blockText(showStatus(statusReport({ bundles })));
  };
  const over = { state: 'baking', leftMs: 0, forMs: 600_000 } as const;

  it('names its missing condition, and no time while the bake time does not pass', () => {
    const waits = {
      worker: 'a living worker that has taken the release, of dns',
      probe: 'a right answer of the probe of dns',
      contact: 'an answer of the server',
      agent: 'an agent that observes this host (writ agent)',
      set: 'the bake time of dns, which moves together with it',
    } as const;
    for (const [what, text] of Object.entries(waits)) {
      const waitsFor = { what: what as keyof typeof waits, of: ['dns'] };
      const block = shown({ ...over, waitsFor });
      assert.ok(block.includes(`  bake time dns-edge 42 waits for ${text}\n`), block);
      assert.ok(block.includes('  baking, waits  ') && !block.includes(' left  '), block);
    }
    const untaken = shown({ ...over, untaken: true, waitsFor: { what: 'worker', of: ['dns'] } });
    assert.ok(untaken.includes('  no worker has it  '), untaken);
    assert.ok(!shown({ ...over, leftMs: 60_000 }).includes('waits'));
  });

  it('warns of workers with ends in the bake time, as health does', () => {
    const ends = [{ worker: 'app/a', abnormal: 0, unexplained: 2 }];
    const text = 'app/a had 2 unexplained restarts since dns-edge 42 became active [WORKER_RESTARTED]';
    assert.ok(shown({ ...over, ends }).includes(`  warning   ${text}\n`), shown({ ...over, ends }));
  });

  it('names the release that withdraws another one', () => {
    const server = { serial: 41, revision: 'r41' };
    assert.match(shown(over, { server, withdrawnBy: 41 }), / {2}41, withdraws 42\n/);
    assert.match(shown(over, { server }), / {2}41\n/);
  });
});
