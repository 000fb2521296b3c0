import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatSystemdStatus, hasVerifiedPolicy } from '../../../../src/core/status/systemd-text.js';
import { problem } from '../../../kit/cli/cycle-results.js';
import { statusReport, workerStatus } from '../../../kit/cli/status-reports.js';

const { generation: _, ...noneActive } = statusReport();

describe('a verified policy', () => {
  it('is active with expired metadata and with an unreachable server', () => {
    assert.equal(hasVerifiedPolicy(statusReport()), true);
    assert.equal(hasVerifiedPolicy(statusReport({ freshness: { state: 'frozen' } })), true);
    const problems = [problem('SERVER_UNREACHABLE', 'connection refused')];
    assert.equal(hasVerifiedPolicy(statusReport({ problems })), true);
  });

  it('is not active on a host without a generation', () => {
    assert.equal(hasVerifiedPolicy(noneActive), false);
  });

  for (const code of ['STATE_DAMAGED', 'UNTRUSTED_ACTIVE', 'INTERNAL'] as const) {
    it(`is not active with ${code}`, () => {
      assert.equal(hasVerifiedPolicy(statusReport({ problems: [problem(code, 'text')] })), false);
    });
  }

  it('is not active if the active release does not verify against the current keys', () => {
    const release = { bundle: 'dns-edge', serial: 42, generation: 18, reason: 'no key' };
    assert.equal(hasVerifiedPolicy(statusReport({ untrusted: [{ ...release, active: true }] })), false);
    assert.equal(hasVerifiedPolicy(statusReport({ untrusted: [{ ...release, active: false }] })), true);
  });
});

describe('the status line of systemd', () => {
  it('names the active releases and the confirmed workers', () => {
    assert.equal(
      formatSystemdStatus(statusReport()),
      'generation 18 (dns-edge 42, access 9) is active, 2 of 2 workers confirmed',
    );
  });

  it('names a problem with its level and code', () => {
    const workers = [workerStatus('kresd@1', 'confirmed'), workerStatus('kresd@2', 'unreachable')];
    const finding = { level: 'warning', code: 'WORKER_UNREACHABLE', text: 'kresd@2 did not answer' } as const;
    const groups = [{ group: 'resolver', workers: 2, confirmed: 1, min: 1, findings: [finding] }];
    assert.equal(
      formatSystemdStatus(statusReport({ workers, groups, bundles: [] })),
      'generation 18 is active, 1 of 2 workers confirmed; warning: kresd@2 did not answer [WORKER_UNREACHABLE]',
    );
  });

  it('names no active policy on a host without one', () => {
    const last = { cycle: 'c-1', trigger: 'start', outcome: 'failed', atMs: 0 } as const;
    assert.equal(
      formatSystemdStatus({ ...noneActive, last, freshness: { state: 'fresh' } }),
      'no policy is active, waiting for the first, the last try: failed',
    );
  });

  it('stays the same if only the time changes', () => {
    const later = statusReport({ nextPollAtMs: 5, atMs: statusReport().atMs + 60_000 });
    assert.equal(formatSystemdStatus(later), formatSystemdStatus(statusReport()));
  });

  it('is bounded for any number of problems', () => {
    const problems = Array.from({ length: 50 }, (_unused, index) =>
      problem('CHECK_FAILED', `${index} ${'x'.repeat(1000)}`),
    );
    assert.ok(formatSystemdStatus(statusReport({ problems })).length < 500);
  });
});
