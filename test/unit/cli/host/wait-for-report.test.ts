import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { waitForReport } from '../../../../src/cli/host/wait-for-report.js';
import { isWritError, WritError } from '../../../../src/core/errors.js';
import type { StatusReport } from '../../../../src/core/status/status.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { problem } from '../../../kit/cli/cycle-results.js';
import { statusReport } from '../../../kit/cli/status-reports.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const fleet = { url: 'https://fleet/', state: 'reporting', keyId: 'abc', pending: 0 } as const;
const away = problem('FLEET_UNREACHABLE', 'https://fleet/: ENOTFOUND');
const silent = statusReport({ fleet: { ...fleet, problem: away }, problems: [away] });
const reported = statusReport({ fleet: { ...fleet, acknowledgedAtMs: 1 } });

/** Reads that end as scripted; the last result repeats. */
function waiting(script: readonly (StatusReport | WritError)[], duration = '2m') {
  const clock = fakeClock({ mode: 'skip' });
  const stop = new AbortController();
  let reads = 0;
  const wait = () =>
    waitForReport({
      wait: duration,
      context: { clock, signal: stop.signal },
      readStatus: () => {
        const next = script[Math.min(reads, script.length - 1)] ?? silent;
        reads += 1;
        return isWritError(next) ? Promise.reject(next) : Promise.resolve(next);
      },
    });
  return { wait, stop, reads: () => reads };
}

describe('a wait for the first report of a host', () => {
  it('ends with 0 after a fleet server has acknowledged a report', async () => {
    const { wait, reads } = waiting([silent, silent, reported]);
    const { outcome, exitCode } = await wait();
    assert.deepEqual([outcome, exitCode, reads()], ['reported', 0, 3]);
  });

  it('ends with 1 and the reason after the timeout', async () => {
    const { exitCode, lines, details } = await waiting([silent]).wait();
    assert.equal(exitCode, 1);
    assert.equal(details['waitedMs'], 120_000);
    assert.deepEqual(lines, [
      'TIME OVER  no fleet server has acknowledged a report within 2 min',
      '  fleet     https://fleet/  no report yet  [FLEET_UNREACHABLE]',
      '            https://fleet/: ENOTFOUND',
    ]);
  });

  it('names the missing key when no agent reports to a fleet', async () => {
    const { exitCode, lines } = await waiting([statusReport()], '1ms').wait();
    assert.equal(exitCode, 1);
    assert.match(lines.join(), /the key `fleet` is missing, or no agent runs/);
  });

  it('continues while an agent does not answer yet, and ends on an error that a wait does not fix', async () => {
    const starting = new WritError('AGENT_UNREACHABLE', 'no socket');
    assert.equal((await waiting([starting, reported]).wait()).exitCode, 0);
    await rejectsCode('AGENT_UNREACHABLE', waiting([starting]).wait());
    const { wait, reads } = waiting([new WritError('CONFIG_INVALID', 'no')]);
    await rejectsCode('CONFIG_INVALID', wait());
    await rejectsCode('USAGE', waiting([silent], 'soon').wait());
    assert.equal(reads(), 1);
  });

  it('ends with 130 after a signal', async () => {
    const { wait, stop } = waiting([silent]);
    stop.abort();
    assert.equal((await wait()).exitCode, 130);
  });
});
