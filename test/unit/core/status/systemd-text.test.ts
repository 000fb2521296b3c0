import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { servesVerifiedPolicy, statusLine } from '../../../../src/core/status/systemd-text.js';
import { problem } from '../../../kit/cli/cycle-results.js';
import { statusReport, workerStatus } from '../../../kit/cli/status-reports.js';

const { generation: _, ...noneActive } = statusReport();

describe('a verified policy', () => {
  it('is served when a generation is active, also when its metadata has expired or the server is away', () => {
    assert.equal(servesVerifiedPolicy(statusReport()), true);
    assert.equal(servesVerifiedPolicy(statusReport({ freshness: { state: 'frozen' } })), true);
    const problems = [problem('SERVER_UNREACHABLE', 'connection refused')];
    assert.equal(servesVerifiedPolicy(statusReport({ problems })), true);
  });

  it('is not served when none is active', () => {
    assert.equal(servesVerifiedPolicy(noneActive), false);
  });

  for (const code of ['STATE_DAMAGED', 'UNTRUSTED_ACTIVE', 'INTERNAL'] as const) {
    it(`is not served with ${code}`, () => {
      assert.equal(servesVerifiedPolicy(statusReport({ problems: [problem(code, 'text')] })), false);
    });
  }

  it('is not served when keys of today no longer vouch for what is active', () => {
    const release = { bundle: 'dns-edge', serial: 42, generation: 18, reason: 'no key' };
    assert.equal(servesVerifiedPolicy(statusReport({ untrusted: [{ ...release, active: true }] })), false);
    assert.equal(servesVerifiedPolicy(statusReport({ untrusted: [{ ...release, active: false }] })), true);
  });
});

describe('the line of status', () => {
  it('says what is active and who confirmed it', () => {
    assert.equal(
      statusLine(statusReport()),
      'generation 18 (dns-edge 42, access 9) is active, 2 of 2 workers confirmed',
    );
  });

  it('says what is wrong, with its level and code', () => {
    const workers = [workerStatus('kresd@1', 'confirmed'), workerStatus('kresd@2', 'unreachable')];
    const finding = { level: 'warning', code: 'WORKER_UNREACHABLE', text: 'kresd@2 did not answer' } as const;
    const groups = [{ group: 'resolver', workers: 2, confirmed: 1, min: 1, findings: [finding] }];
    assert.equal(
      statusLine(statusReport({ workers, groups, bundles: [] })),
      'generation 18 is active, 1 of 2 workers confirmed; warning: kresd@2 did not answer [WORKER_UNREACHABLE]',
    );
  });

  it('never says that policy is active when none is', () => {
    const last = { cycle: 'c-1', trigger: 'start', outcome: 'failed', atMs: 0 } as const;
    assert.equal(
      statusLine({ ...noneActive, last, freshness: { state: 'fresh' } }),
      'no policy is active, waiting for the first, the last try: failed',
    );
  });

  it('is the same while only time goes by', () => {
    const later = statusReport({ nextPollAtMs: 5, atMs: statusReport().atMs + 60_000 });
    assert.equal(statusLine(later), statusLine(statusReport()));
  });

  it('is bounded whatever went wrong', () => {
    const problems = Array.from({ length: 50 }, (_unused, index) =>
      problem('CHECK_FAILED', `${index} ${'x'.repeat(1000)}`),
    );
    assert.ok(statusLine(statusReport({ problems })).length < 500);
  });
});
