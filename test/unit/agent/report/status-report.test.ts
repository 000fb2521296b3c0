import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { isUnreached, keepContact } from '../../../../src/agent/freshness/contact-memory.js';
import type { AgentFacts } from '../../../../src/agent/report/status-facts.js';
import { readStatusFile, writeStatusFile } from '../../../../src/agent/report/status-file.js';
import { statusReport } from '../../../../src/agent/report/status-report.js';
import { resume } from '../../../../src/agent/select/pause.js';
import type { Host } from '../../../../src/agent/state/host.js';
import { WritError } from '../../../../src/core/errors.js';
import { manifestDigest } from '../../../../src/core/release/manifest.js';
import { judgeHostHealth } from '../../../../src/core/status/host-health.js';
import { recordEmptyScan, recordScan } from '../../../../src/core/status/scrub-state.js';
import { settleNow } from '../../../kit/agent/settle-now.js';
import { cycleResult, problem } from '../../../kit/cli/cycle-results.js';
import { statusReport as sampleReport } from '../../../kit/cli/status-reports.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { testHost } from '../../../kit/host/test-host.js';
import { down, simulatedMirror, upload } from '../../../kit/repository/simulated-mirror.js';
import { confirms, refuses, scriptedDriver, unreachable } from '../../../kit/workers/scripted-driver.js';

const facts: AgentFacts = { version: '0.1.0', state: 'run', contact: { contact: {} }, problems: [] };

describe('the status of a host', () => {
  it('that is new is short and has no problem', () => {
    using test = testHost();
    const report = statusReport(test.host, facts);
    assert.deepEqual([report.generation, report.confirmed, report.problems], [undefined, false, []]);
    assert.deepEqual(report.bundles, [{ bundle: 'access', channel: 'stable' }]);
  });

  it('has no scan after a start without a generation', async () => {
    using test = testHost();
    const scrub = recordEmptyScan(undefined, test.clock.nowMs());
    setLedger(test.host.ledger, { scrub });
    assert.equal(statusReport(test.host, facts).scrub, undefined);
    const scanned = recordScan(scrub, { atMs: test.clock.nowMs(), damage: [], repair: 'none' });
    setLedger(test.host.ledger, { scrub: scanned });
    assert.equal(statusReport(test.host, facts).scrub?.counts.looks, 1);
  });

  it('is not confirmed without an active generation, whatever the remaining ledger entries of workers are', () => {
    using test = testHost({ groups: { app: { driver: scriptedDriver({ a: confirms }) } } });
    const proved = { wanted: 1, confirmed: 1, state: 'confirmed', text: '1', atMs: 1 } as const;
    setLedger(test.host.ledger, { workers: { 'app/a': proved } });
    assert.equal(statusReport(test.host, facts).confirmed, false);
  });

  it('shows a confirmation of the active generation only, or of one that is equal for the group', async () => {
    using test = testHost({
      bundles: [{ name: 'access' }, { name: 'other' }],
      groups: { app: { driver: scriptedDriver({ a: confirms }), config: { uses: ['access'] } } },
    });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.publish('other', { f: '1' }, { serial: 1 });
    await test.pull();
    const proofs = (changes: object = {}) => {
      const { workers } = test.host.ledger.read();
      setLedger(test.host.ledger, { workers: { 'app/a': { ...workers['app/a']!, ...changes } } });
      const report = statusReport(test.host, facts);
      return [report.confirmed, report.workers.filter((one) => one.provenAtMs !== undefined).length];
    };
    assert.deepEqual(proofs(), [true, 1]);
    await test.publish('other', { f: '2' }, { serial: 2 });
    await test.pull();
    assert.deepEqual(
      [proofs({ wanted: 1, confirmed: 1 }), statusReport(test.host, facts).generation],
      [[true, 1], 2],
    );
    assert.deepEqual(proofs({ wanted: 7, confirmed: 7 }), [false, 0]);
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    assert.deepEqual(proofs(), [true, 1]);
    assert.deepEqual(proofs({ wanted: 2, confirmed: 2 }), [false, 0]);
  });

  it('names the active generation, the offered releases, the workers and the trusted metadata', async () => {
    using test = testHost({ groups: { app: { driver: scriptedDriver({ a: confirms }) } } });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1, revision: 'r1' });
    const last = await test.pull();
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2, revision: 'r2' });
    await test.host.client.refresh();
    const report = statusReport(test.host, { ...facts, last });
    assert.deepEqual([report.generation, report.confirmed, report.last?.outcome], [1, true, 'activated']);
    const { serial, revision, server } = report.bundles[0]!;
    assert.deepEqual([serial, revision, server], [1, 'r1', { serial: 2, revision: 'r2' }]);
    assert.deepEqual(
      report.workers.map((one) => [one.group, one.worker, one.wanted, one.confirmed]),
      [['app', 'a', 1, 1]],
    );
    assert.deepEqual(
      report.trust.map((one) => one.role),
      ['timestamp', 'snapshot', 'targets', 'root'],
    );
  });

  it('names the mirrors and their failures after the first request', async () => {
    const mirrors = [simulatedMirror('https://a/'), simulatedMirror('https://b/')] as const;
    using test = testHost({ mirrors });
    assert.equal(statusReport(test.host, facts).mirrors, undefined);
    upload(test.repository.files, mirrors);
    mirrors[0].fault = down();
    await test.host.client.refresh();
    const sinceMs = test.clock.nowMs();
    assert.deepEqual(statusReport(test.host, facts).mirrors, [
      { url: 'https://a/', state: 'failed', code: 'SERVER_UNREACHABLE', sinceMs },
      { url: 'https://b/', state: 'used' },
    ]);
  });

  it('has a problem for each unreadable part, and all other parts', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'dns-edge' }] });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    const knownTarget: Host['client']['knownTarget'] = (bundle, channel) => {
      if (bundle === 'dns-edge') throw new WritError('TARGET_MALFORMED', 'no serial');
      return test.host.client.knownTarget(bundle, channel);
    };
    const malformed = { ...test.host, client: { ...test.host.client, knownTarget } };
    const report = statusReport(malformed, facts);
    assert.deepEqual(
      report.problems.map((one) => one.code),
      ['TARGET_MALFORMED'],
    );
    assert.deepEqual(
      report.bundles.map((one) => [one.bundle, one.serial]),
      [
        ['access', 1],
        ['dns-edge', undefined],
      ],
    );
    fs.rmSync(`${test.host.paths.archives}/access`, { recursive: true });
    const damaged = statusReport(test.host, facts);
    assert.deepEqual([damaged.generation, damaged.problems[0]?.code], [1, 'STATE_DAMAGED']);
    assert.equal(damaged.bundles[0]?.serial, 1, 'its link names the serial, and it is in use');
  });

  it('reports a block once, with its message', async () => {
    using test = testHost();
    const { ledger } = test.host;
    setLedger(ledger, { blocked: { reason: 'crashed', atMs: 1, manifestDigests: [] } });
    const blocked = problem('ACTIVATION_BLOCKED', 'crashed');
    for (const last of [blocked, { ...blocked, message: '' }]) {
      const report = statusReport(test.host, {
        ...facts,
        last: cycleResult('blocked', { problems: [last] }),
      });
      assert.deepEqual(
        report.problems.map((one) => one.message),
        ['crashed'],
      );
    }
  });
});

describe('a restriction that an operator ended with `writ resume`', () => {
  const codes = ({ host }: { readonly host: Host }, last: Parameters<typeof cycleResult>[1]): string[] =>
    statusReport(host, { ...facts, last: cycleResult('unchanged', last) }).problems.map(({ code }) => code);

  it('is a hold, which disappears at once although the last cycle reported it', () => {
    using test = testHost();
    const hold = { bundle: 'access', serial: 2, by: 'anna', reason: '', atMs: 1 };
    setLedger(test.host.ledger, { holds: [{ ...hold, manifestDigest: manifestDigest(new Uint8Array()) }] });
    const held = { ...problem('RELEASE_HELD', 'held'), facts: { bundle: 'access', serial: 2 } };
    const newer = { ...held, message: 'newer', facts: { bundle: 'access', serial: 3 } };
    assert.deepEqual(codes(test, { problems: [held] }), ['RELEASE_HELD']);
    assert.deepEqual(codes(test, { problems: [newer] }), [], 'another hold than that of the last cycle');
    resume(test.host);
    assert.deepEqual(codes(test, { problems: [held] }), []);
  });

  it('is a block; one without a record in the ledger stays until the next cycle', () => {
    using test = testHost();
    setLedger(test.host.ledger, { blocked: { reason: 'crashed', atMs: 1, manifestDigests: [] } });
    const blocked = { ...problem('ACTIVATION_BLOCKED', 'crashed'), facts: { bundle: 'access', since: 1 } };
    assert.deepEqual(codes(test, { problems: [blocked] }), ['ACTIVATION_BLOCKED']);
    resume(test.host);
    assert.deepEqual(codes(test, { problems: [blocked] }), []);
    assert.deepEqual(codes(test, { problems: [{ ...blocked, facts: {} }] }), ['ACTIVATION_BLOCKED']);
  });
});

describe('the workers of a host', () => {
  const world = async (min = 0) => {
    const driver = scriptedDriver({ a: confirms, b: unreachable });
    const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min };
    const test = testHost({ groups: { app: { driver, config: { reset } } } });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    return { test, driver, last: await test.pull() };
  };
  const codesOf = (test: ReturnType<typeof testHost>, last: Awaited<ReturnType<typeof test.pull>>) =>
    statusReport(test.host, { ...facts, last }).problems.map((one) => one.code);

  it('are reported from the ledger with attempts and next time, not as the last cycle found them', async () => {
    const { test, driver, last } = await world();
    using _ = test;
    const [, missed] = statusReport(test.host, { ...facts, last }).workers;
    assert.deepEqual([missed?.tries, missed?.nextNotificationAtMs], [1, test.clock.nowMs() + 5000]);
    assert.equal(missed?.notificationId, `${last.cycle}.2`);
    assert.deepEqual(codesOf(test, last), ['WORKER_UNREACHABLE']);
    driver.workers.set('b', confirms);
    await test.pull();
    assert.deepEqual(codesOf(test, last), []);
  });

  it('that departed are pending, and too few workers are a problem of health', async () => {
    const { test, driver, last } = await world(2);
    using _ = test;
    driver.workers.delete('b');
    await test.pull();
    const report = statusReport(test.host, { ...facts, last });
    assert.deepEqual([report.confirmed, report.workers[1]?.state], [false, 'pending']);
    assert.deepEqual(
      judgeHostHealth(report).findings.map(({ level, code }) => [level, code]),
      [['warning', 'WORKERS_MISSING']],
    );
    assert.equal(report.workers[1]?.goneAtMs, test.clock.nowMs());
    assert.deepEqual(codesOf(test, last), ['WORKERS_MISSING']);
  });

  it('that never confirmed are no problem once they departed', async () => {
    const driver = scriptedDriver({ a: confirms }, 'early');
    using test = testHost({ groups: { app: { driver, config: { confirm: 'required' } } } });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    const last = await test.pull();
    assert.deepEqual(codesOf(test, last), ['WORKER_UNCONFIRMED']);
    driver.workers.delete('a');
    await settleNow(test.host);
    assert.deepEqual(codesOf(test, last), []);
  });

  it('that cannot be listed are not confirmed', async () => {
    const { test, driver, last } = await world();
    using _ = test;
    driver.workers.delete('b');
    await test.pull();
    driver.unread = 'EACCES';
    await test.pull();
    assert.equal(statusReport(test.host, facts).confirmed, false);
    assert.deepEqual(codesOf(test, last), ['WORKER_UNREACHABLE']);
  });
});

describe('status.json', () => {
  it('is readable for all users, without the texts of workers, checks and operators', async () => {
    const driver = scriptedDriver({ a: refuses('SECRET-ANSWER') });
    const check = {
      kind: 'run',
      name: 'c',
      run: ['sh', '-c', 'echo SECRET-OUTPUT; exit 1'],
      timeoutMs: 60_000,
    } as const;
    using test = testHost({
      bundles: [{ name: 'access' }, { name: 'dns-edge', checks: [check] }],
      groups: { app: { driver } },
    });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.publish('dns-edge', { 'policy.yaml': '1' }, { serial: 1 });
    const last = await test.pull();
    const { ledger } = test.host;
    const manifestDigest = test.host.client.knownTarget('access', 'stable')!.release.manifest.digest;
    const hold = { bundle: 'access', serial: 1, manifestDigest, by: 'anna', atMs: 1 };
    setLedger(ledger, { holds: [{ ...hold, reason: 'SECRET-REASON' }] });
    const report = statusReport(test.host, { ...facts, last });
    for (const secret of ['SECRET-ANSWER', 'SECRET-OUTPUT', 'SECRET-REASON'])
      assert.ok(JSON.stringify(report).includes(secret), `${secret} is notified over the control socket`);
    writeStatusFile(test.host, report);
    const text = fs.readFileSync(test.host.paths.status, 'utf8');
    assert.ok(!text.includes('SECRET'), text);
    assert.equal(fs.statSync(test.host.paths.status).mode & 0o777, 0o644);
    const known = readStatusFile(test.host.paths);
    assert.deepEqual(
      known?.problems.map((one) => one.code),
      report.problems.map((one) => one.code),
    );
  });

  it('leaves out a download, which may end with the agent', () => {
    using test = testHost();
    writeStatusFile(test.host, { ...sampleReport(), downloading: { doneBytes: 1, totalBytes: 2 } });
    assert.equal(readStatusFile(test.host.paths)?.downloading, undefined);
  });

  it('is written again only after a change', () => {
    using test = testHost();
    const report = sampleReport();
    const inode = (): number => fs.statSync(test.host.paths.status).ino;
    writeStatusFile(test.host, report);
    const first = inode();
    const later = {
      ...report,
      atMs: report.atMs + 1,
      nextPollAtMs: 9,
      downloading: { doneBytes: 1, totalBytes: 2 },
      freshness: { state: 'fresh', lastContactAtMs: 9 },
    } as const;
    writeStatusFile(test.host, later);
    assert.equal(inode(), first);
    writeStatusFile(test.host, { ...later, freshness: { state: 'stale', lastContactAtMs: 9 } });
    assert.notEqual(inode(), first);
    assert.equal(readStatusFile(test.host.paths)?.freshness.lastContactAtMs, 9);
  });

  it('that cannot be written or read stops nothing', () => {
    using test = testHost();
    fs.mkdirSync(test.host.paths.status);
    writeStatusFile(test.host, sampleReport());
    assert.equal(readStatusFile(test.host.paths), undefined);
    fs.rmdirSync(test.host.paths.status);
    execFileSync('mkfifo', [test.host.paths.status]);
    assert.equal(readStatusFile(test.host.paths), undefined);
    fs.rmSync(test.host.paths.status);
    for (const text of ['', '{', 'null', '{"type":"status.result"}', `"${'x'.repeat(1_000_001)}"`]) {
      fs.writeFileSync(test.host.paths.status, text);
      assert.equal(readStatusFile(test.host.paths), undefined);
    }
  });
});

describe('the memory of contacts', () => {
  it('measures the age of the last success by a clock that cannot be set', async () => {
    const clock = fakeClock();
    const keeper = keepContact(undefined, clock);
    assert.deepEqual(keeper.read(), { contact: {} });
    keeper.note({ atMs: 5 });
    await clock.advance(1000);
    assert.deepEqual(keeper.read(), { contact: { lastContactAtMs: 5, verifiedAtMs: 5 }, elapsedMs: 1000 });
    keeper.note(undefined);
    assert.equal(keeper.read().elapsedMs, 1000);
  });

  it('survives a restart in status.json', () => {
    const refused = { code: 'METADATA_MIX', sinceMs: 1, atMs: 2, times: 3 } as const;
    const known = sampleReport({
      freshness: { state: 'refused', lastContactAtMs: 2, verifiedAtMs: 0, refused },
    });
    assert.deepEqual(keepContact(known, fakeClock()).read(), {
      contact: { lastContactAtMs: 2, verifiedAtMs: 0, refused },
    });
  });

  it('delays the next poll after the server was not reached', () => {
    assert.ok(isUnreached(cycleResult('failed', { problems: [problem('SERVER_BUSY', '')] })));
    assert.ok(!isUnreached(cycleResult('failed', { problems: [problem('METADATA_MIX', '')] })));
  });
});

describe('a clock that is behind', () => {
  it('is reported with the difference until it is correct', async () => {
    using test = testHost();
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    const floorMs = test.clock.nowMs();
    test.clock.setWallTime(floorMs - 7_200_000);
    assert.deepEqual(statusReport(test.host, facts).clock, { floorMs, behindMs: 7_200_000 });
    assert.deepEqual(statusReport(test.reopen(), facts).clock, { floorMs, behindMs: 7_200_000 });
    test.clock.setWallTime(floorMs - 1000);
    assert.equal(statusReport(test.host, facts).clock, undefined);
  });
});
