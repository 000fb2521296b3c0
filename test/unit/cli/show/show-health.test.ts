import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { healthLine } from '../../../../src/cli/show/show-health.js';
import { judgeHostHealth } from '../../../../src/core/status/host-health.js';
import { statusReport, workerStatus } from '../../../kit/cli/status-reports.js';

describe('the line of health', () => {
  it('reports an unconfirmed generation, also when the level is ok', () => {
    const lineOf = (report: ReturnType<typeof statusReport>): string =>
      healthLine(report, { ...judgeHostHealth(report), findings: [] });
    const workers = [workerStatus('1234', 'notified')];
    assert.match(lineOf(statusReport({ confirmed: false, workers })), /is active \(unconfirmed\)/);
    assert.doesNotMatch(lineOf(statusReport({ confirmed: true })), /unconfirmed/);
  });

  it('reports a pause with an end, which is no finding', () => {
    const untilMs = Date.UTC(2026, 10, 22, 8);
    const report = statusReport({ pause: { by: 'anna', reason: 'freeze', atMs: 1, untilMs } });
    assert.match(
      healthLine(report, judgeHostHealth(report)),
      /^OK {2}.*, paused until 2026-11-22 08:00 UTC {4}/,
    );
  });
});
