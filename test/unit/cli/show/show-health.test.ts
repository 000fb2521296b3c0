import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { healthLine } from '../../../../src/cli/show/show-health.js';
import { judgeHealth } from '../../../../src/core/status/host-health.js';
import { statusReport, workerStatus } from '../../../kit/cli/status-reports.js';

describe('the line of health', () => {
  it('says that nobody proved the generation, though all is well', () => {
    const lineOf = (report: ReturnType<typeof statusReport>): string =>
      healthLine(report, { ...judgeHealth(report), findings: [] });
    const workers = [workerStatus('1234', 'notified')];
    assert.match(lineOf(statusReport({ confirmed: false, workers })), /is active \(unconfirmed\)/);
    assert.doesNotMatch(lineOf(statusReport({ confirmed: true })), /unconfirmed/);
  });
});
