// `writ doctor`, check `policy`.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgePolicy } from '../../../../src/agent/doctor/check-policy.js';
import type { StatusReport } from '../../../../src/core/status/status.js';
import { problem } from '../../../kit/cli/cycle-results.js';
import { statusReport } from '../../../kit/cli/status-reports.js';

const findings = (report: StatusReport): string[] =>
  [judgePolicy(report)].flat().map(({ state, code }) => `${state} ${code ?? ''}`.trim());

describe('the policy of a host', () => {
  it('is ok with an active generation', () => {
    assert.deepEqual(judgePolicy(statusReport()), { state: 'ok', text: 'generation 18 is active' });
  });

  it('is a failure without an active generation', () => {
    const { generation: _, ...nothing } = statusReport();
    const text = 'no policy is active';
    assert.deepEqual(judgePolicy(nothing), {
      state: 'FAIL',
      text,
      next: 'writ pull',
      code: 'NOTHING_ACTIVE',
    });
  });

  it('is a failure for each critical finding of health that no other check reports', () => {
    const problems = [problem('STATE_DAMAGED', 'x is damaged'), problem('UNTRUSTED_ACTIVE', 'y is foreign')];
    assert.deepEqual(findings(statusReport({ problems })), ['FAIL STATE_DAMAGED']);
    assert.deepEqual(findings(statusReport({ problems: [problem('DISK_FULL', 'full')] })), ['ok']);
  });
});
