import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import {
  endExpiredWaits,
  handlePause,
  handleResume,
} from '../../../../src/agent/control/operator-requests.js';
import { rollBack } from '../../../../src/agent/cycle/rollback.js';
import { createUntrustedExit } from '../../../../src/agent/cycle/untrusted-exit.js';
import { readHistory } from '../../../../src/agent/job/history.js';
import { readStatusFile, writeStatusFile } from '../../../../src/agent/report/status-file.js';
import { statusReport } from '../../../../src/agent/report/status-report.js';
import { pause, repairNow, resume } from '../../../../src/agent/select/pause.js';
import { pauseNow } from '../../../../src/agent/select/why-not-now-rules.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { cycleOn } from '../../../kit/agent/cycle-on.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { cycleResult, problem } from '../../../kit/cli/cycle-results.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

const hourMs = 3_600_000;
const order = { by: 'anna', reason: 'change freeze' };
const codes = ({ problems }: CycleResult): string[] => problems.map((one) => one.code);
const facts = { version: '0.1.0', state: 'run', contact: { contact: {} }, problems: [] } as const;

/** Version 1 is active, version 2 is published, and the host is paused for an hour. */
async function pausedHost(): Promise<{ test: TestHost; driver: ScriptedDriver }> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ groups: { app: { driver } } });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
  driver.notified.length = 0;
  pause(test.host, { ...order, untilMs: test.clock.nowMs() + hourMs });
  return { test, driver };
}

describe('a paused host', () => {
  it('reports deferred with the waiting release, and changes neither the link nor a worker', async () => {
    const { test, driver } = await pausedHost();
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, codes(result), result.changed], [8, ['ACTIVATION_PAUSED'], false]);
    const { bundle, outcome, toSerial } = result.bundles[0] ?? {};
    assert.deepEqual([bundle, outcome, toSerial], ['access', 'deferred', 2]);
    assert.deepEqual([driver.notified, test.read('access/policy.yaml')], [[], '1']);
    assert.deepEqual(fs.readdirSync(`${test.host.paths.archives}/access`).length, 1, 'nothing was fetched');
  });

  it('continues to refresh, so that it reports the release that waits', async () => {
    const { test } = await pausedHost();
    using _ = test;
    await test.pull();
    const [bundle] = statusReport(test.host, facts).bundles;
    assert.deepEqual([bundle?.serial, bundle?.server?.serial], [1, 2]);
  });

  it('is unchanged when nothing waits', async () => {
    const { test } = await pausedHost();
    using _ = test;
    resume(test.host);
    await test.pull();
    pause(test.host, order);
    assert.equal((await test.pull()).exitCode, 0);
  });

  it('stays paused across a restart, and ends by itself', async () => {
    const { test } = await pausedHost();
    using _ = test;
    const restarted = test.reopen();
    assert.equal((await cycleOn(restarted)).outcome, 'deferred');
    await test.clock.advance(hourMs);
    assert.equal(pauseNow(restarted.ledger.read(), test.clock.nowMs()), undefined);
    assert.equal((await cycleOn(restarted)).outcome, 'activated');
  });

  it('activates the newest release at the end, and not the first waiting one', async () => {
    const { test, driver } = await pausedHost();
    using _ = test;
    await test.pull();
    await test.publish('access', { 'policy.yaml': '3' }, { serial: 3 });
    resume(test.host);
    assert.equal((await test.pull()).bundles[0]?.toSerial, 3);
    assert.deepEqual(driver.notified, ['a 2']);
  });

  it('activates a release in a forced pull, and stays paused', async () => {
    const { test } = await pausedHost();
    using _ = test;
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
    assert.ok(pauseNow(test.host.ledger.read(), test.clock.nowMs()));
  });

  it('reports the refusal of a release that is refused anyway', async () => {
    const { test } = await pausedHost();
    using _ = test;
    const { ledger } = test.host;
    const manifestDigest = test.host.client.knownTarget('access', 'stable')!.release.manifest.digest;
    const hold = { bundle: 'access', serial: 2, manifestDigest, by: 'otto', reason: 'eu', atMs: 1 };
    setLedger(ledger, { holds: [hold] });
    assert.deepEqual(codes(await test.pull()), ['RELEASE_HELD']);
  });

  it('keeps a bundle that left the configuration until the end', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'dns-edge' }] });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.publish('dns-edge', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    const fewer = test.reopen({ bundles: [{ name: 'access' }] });
    pause(fewer, order);
    const waiting = await cycleOn(fewer);
    assert.deepEqual([waiting.exitCode, codes(waiting)], [8, ['ACTIVATION_PAUSED']]);
    assert.equal(test.read('dns-edge/policy.yaml'), '1');
    resume(fewer);
    assert.equal((await cycleOn(fewer)).outcome, 'activated');
    assert.throws(() => test.read('dns-edge/policy.yaml'), { code: 'ENOENT' });
  });

  it('notifies a new worker of the active generation', async () => {
    const { test, driver } = await pausedHost();
    using _ = test;
    driver.workers.set('late', confirms);
    await test.pull();
    assert.deepEqual(driver.notified, ['late 1']);
  });

  it('neither repairs the disk nor replaces an untrusted release by itself', async () => {
    const { test } = await pausedHost();
    using _ = test;
    assert.equal(repairNow(test.host), 'no');
    const config = { ...test.host.config, untrusted: 'rollback' } as const;
    const result = cycleResult('degraded', { problems: [problem('UNTRUSTED_ACTIVE', 'alarm')] });
    const exit = createUntrustedExit();
    const end = { ...(await test.sync()), result };
    const { signal } = new AbortController();
    assert.equal(await exit.afterCycle({ ...test.host, config }, end, signal), undefined);
    resume(test.host);
    assert.equal(repairNow(test.host), 'yes');
  });

  it('moves back when an operator runs writ rollback', async () => {
    const { test } = await pausedHost();
    using _ = test;
    resume(test.host);
    await test.pull();
    pause(test.host, order);
    const { signal } = new AbortController();
    const back = await rollBack(test.host, { by: 'anna', signal, onEvent: () => undefined });
    assert.deepEqual([back.result.outcome, back.result.generation], ['activated', 1]);
  });
});

describe('a pause', () => {
  it('is refused unless it ends in the future and within a year', () => {
    using test = testHost();
    const nowMs = test.clock.nowMs();
    for (const untilMs of [nowMs, nowMs - 1, nowMs + 400 * 24 * hourMs])
      throwsCode('USAGE', () => pause(test.host, { ...order, untilMs }));
    assert.equal(test.host.ledger.read().pause, undefined);
  });

  it('is refused with the permitted times, also for an end beyond the range of dates', () => {
    using test = testHost();
    const given = (untilMs: number) =>
      throwsCode('USAGE', () => pause(test.host, { ...order, untilMs })).facts.actual;
    assert.equal(given(1e12), '2001-09-09 01:46:40 UTC');
    assert.equal(given(9e15), '9000000000000000 ms');
  });

  it('without an end lasts until it is resumed, and is replaced by a later one', () => {
    using test = testHost();
    pause(test.host, order);
    assert.ok(pauseNow(test.host.ledger.read(), Number.MAX_SAFE_INTEGER));
    pause(test.host, { by: 'otto', reason: 'longer', untilMs: test.clock.nowMs() + 1 });
    assert.equal(test.host.ledger.read().pause?.by, 'otto');
    assert.deepEqual(resume(test.host).ended, [{ kind: 'pause', what: 'user otto: longer' }]);
    assert.deepEqual(resume(test.host).ended, []);
  });

  it('is in the history with its operator, reason and end, and so is its resumption', async () => {
    using test = testHost();
    const { host, clock } = test;
    handlePause(host, { ...order, untilMs: clock.nowMs() + hourMs });
    assert.equal(endExpiredWaits(host), false);
    await clock.advance(hourMs);
    assert.equal(endExpiredWaits(host), true, 'a cycle must examine the waiting releases');
    assert.equal(endExpiredWaits(host), false);
    handlePause(host, order);
    handleResume(host, 'otto');
    handleResume(host, 'otto');
    const entries = readHistory(host.paths, { limit: 10 }).map((one) => [one.by, one.reason]);
    assert.deepEqual(entries.reverse(), [
      ['anna', 'paused until 2026-11-01 01:00:00 UTC: change freeze'],
      ['writ', 'the pause by user anna is over: change freeze'],
      ['anna', 'paused until it is resumed: change freeze'],
      ['otto', 'ended: pause of user anna: change freeze'],
    ]);
    const pauses = readHistory(host.paths, { limit: 10 }).map((one) => one.pause);
    const atMs = clock.nowMs();
    assert.deepEqual(pauses.reverse(), [
      { ...order, atMs: atMs - hourMs, untilMs: atMs },
      'none',
      { ...order, atMs },
      'none',
    ]);
  });

  it('is in the status with its operator, reason and times, not as a problem, and without the reason for other users', async () => {
    const { test } = await pausedHost();
    using _ = test;
    const last = await test.pull();
    const report = statusReport(test.host, { ...facts, last });
    const atMs = report.pause?.atMs ?? 0;
    assert.deepEqual(report.pause, { ...order, atMs, untilMs: atMs + hourMs });
    assert.deepEqual(report.problems, []);
    writeStatusFile(test.host, report);
    assert.deepEqual(readStatusFile(test.host.paths)?.pause, { ...report.pause, reason: '' });
    await test.clock.advance(hourMs);
    assert.equal(statusReport(test.host, { ...facts, last }).pause, undefined);
  });
});
