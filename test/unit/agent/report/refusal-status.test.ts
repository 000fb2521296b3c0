// The refusal of a release that is not tried any more is history and no current problem; an operator can make Writ forget a refusal.
// remembered-refusals tests current refusals.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { handleForget } from '../../../../src/agent/control/operator-requests.js';
import { readHistory } from '../../../../src/agent/job/history.js';
import { listRefusals } from '../../../../src/agent/report/refusal-status.js';
import { statusReport } from '../../../../src/agent/report/status-report.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { judgeHostHealth } from '../../../../src/core/status/host-health.js';
import type { StatusReport } from '../../../../src/core/status/status.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const good = { 'policy.yaml': 'good' };
const bad = { 'policy.yaml': 'bad' };

/** Serial 1 is active, and the check refused serial 2. */
async function refusedHost(): Promise<{ readonly test: TestHost; readonly last: CycleResult }> {
  const run = ['grep', '-q', 'good', '{bundle}/policy.yaml'] as const;
  const checks = [{ kind: 'run', name: 'judge', run, timeoutMs: 60_000 }] as const;
  const test = testHost({ bundles: [{ name: 'access', checks }] });
  await test.publish('access', good, { serial: 1 });
  await test.pull();
  await test.publish('access', bad, { serial: 2 });
  return { test, last: await test.pull() };
}

function statusOf({ host }: TestHost, last: CycleResult): StatusReport {
  const contact = { contact: { verifiedAtMs: host.clock.nowMs() } };
  return statusReport(host, { version: '0.1.0', state: 'run', contact, problems: [], last });
}

function healthOf(report: StatusReport): string {
  return judgeHostHealth({ ...report, trust: [] })
    .findings.map(({ code }) => code)
    .join();
}

describe('a refusal', () => {
  it('is reported once, as a refusal and not as a problem', async () => {
    const { test, last } = await refusedHost();
    using _ = test;
    assert.deepEqual(
      last.problems.map(({ code }) => code),
      ['CHECK_FAILED'],
    );
    const report = statusOf(test, last);
    assert.deepEqual(
      [report.problems, report.refusals.map(({ serial, code }) => [serial, code])],
      [[], [[2, 'CHECK_FAILED']]],
    );
    assert.equal(healthOf(report), 'REMEMBERED_REFUSAL');
    const again = statusOf(test, await test.pull());
    assert.deepEqual([again.problems, healthOf(again)], [[], 'REMEMBERED_REFUSAL']);
  });

  it('is only counted, without problem or finding, when a newer serial is active', async () => {
    const { test } = await refusedHost();
    using _ = test;
    await test.publish('access', { 'policy.yaml': 'good again' }, { serial: 3 });
    const report = statusOf(test, await test.pull());
    assert.deepEqual([report.bundles[0]?.serial, report.refusals, report.olderRefusals], [3, [], 1]);
    assert.deepEqual([report.problems, healthOf(report)], [[], '']);
    assert.deepEqual(
      listRefusals(test.host).refusals.map(({ serial, state, tries }) => [serial, state, tries]),
      [[2, 'older', 1]],
    );
  });

  it('is only counted after the server withdrew its release', async () => {
    const { test } = await refusedHost();
    using _ = test;
    await test.publish('access', good, { serial: 1 });
    const report = statusOf(test, await test.pull());
    assert.deepEqual([report.bundles[0]?.serial, report.refusals, report.olderRefusals], [1, [], 1]);
    assert.equal(healthOf(report), '');
  });
});

describe('a refusal that an operator removed', () => {
  const anna = { by: 'anna' };

  it('is tried again at the next pull, and recorded in the history with the operator', async () => {
    const { test } = await refusedHost();
    using _ = test;
    const { refusals } = handleForget(test.host, { ...anna, bundle: 'access', serial: 2 });
    assert.deepEqual(
      refusals.map(({ serial, state }) => [serial, state]),
      [[2, 'standing']],
    );
    assert.deepEqual(test.host.refusals.read().refusals, []);
    const [entry] = readHistory(test.host.paths, { limit: 1 });
    assert.deepEqual(
      [entry?.by, entry?.result.trigger, entry?.reason],
      ['anna', 'forget', 'refusals forgotten: access 2'],
    );
    const { problems } = await test.pull();
    assert.deepEqual(
      problems.map(({ code }) => code),
      ['CHECK_FAILED'],
      'its check was asked anew',
    );
  });

  it('fails for a bundle without a refusal, but not if no refusal is remembered at all', async () => {
    const { test } = await refusedHost();
    using _ = test;
    for (const choice of [{ bundle: 'dns-edge' }, { bundle: 'access', serial: 3 }])
      throwsCode('USAGE', () => handleForget(test.host, { ...anna, ...choice }));
    assert.equal(handleForget(test.host, anna).refusals.length, 1);
    assert.deepEqual(handleForget(test.host, anna).refusals, []);
    assert.equal(readHistory(test.host.paths, { limit: 9 }).filter(({ by }) => by !== undefined).length, 1);
  });
});
