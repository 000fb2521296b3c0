import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fleetLines } from '../../../../src/cli/show/show-reporting.js';
import { problem } from '../../../kit/cli/cycle-results.js';
import { statusReport } from '../../../kit/cli/status-reports.js';

const { atMs } = statusReport();
const fleet = { url: 'https://fleet/', state: 'reporting', keyId: 'abc', pending: 0 } as const;

describe('the line of a fleet', () => {
  it('prints the time of the last stored report or the code of the failure, and is omitted without a fleet server', () => {
    const line = (more: object) => fleetLines(statusReport({ fleet: { ...fleet, ...more } }))[0];
    assert.deepEqual(fleetLines(statusReport()), []);
    assert.equal(
      line({ acknowledgedAtMs: atMs - 120_000 }),
      '  fleet     https://fleet/  last report 2 min ago',
    );
    assert.equal(
      line({ problem: problem('FLEET_UNREACHABLE', 'away') }),
      '  fleet     https://fleet/  no report yet  [FLEET_UNREACHABLE]',
    );
    assert.equal(
      line({ state: 'waiting', problem: problem('FLEET_KEY_WAITING', 'waits') }),
      '  fleet     https://fleet/  no report yet, key abc  [FLEET_KEY_WAITING]',
    );
  });

  it('prints the reason of a failed report until it is a problem of the host', () => {
    const away = problem('FLEET_UNREACHABLE', 'https://fleet/: ENOTFOUND\nmore');
    const report = statusReport({ fleet: { ...fleet, problem: away } });
    assert.deepEqual(fleetLines(report).slice(1), [
      '            https://fleet/: ENOTFOUND',
      '            (1 more line)',
    ]);
    assert.deepEqual(fleetLines({ ...report, problems: [away] }).slice(1), []);
  });
});
