// The keys of a release are not trusted any more: releases that were accepted with them are verified again from their records,
// and no rollback activates them.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { createUntrustedExit } from '../../../src/agent/cycle/untrusted-exit.js';
import { readHistory } from '../../../src/agent/job/history.js';
import { createRecorder } from '../../../src/agent/job/record.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { showStatus, statusLabel } from '../../../src/cli/show/show-status.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { type TestHost, type TestHostOptions, testHost } from '../../kit/host/test-host.js';
import { makeKey } from '../../kit/repository/repository-simulator.js';

const signal = new AbortController().signal;
const facts = { version: '0.1.0', state: 'run', contact: { contact: {} }, problems: [] } as const;

function codes(result: CycleResult): string[] {
  return result.problems.map((one) => one.code);
}

async function back(test: TestHost, wish: { generation?: number; force?: true } = {}): Promise<CycleResult> {
  const request = { by: 'anna', reason: 'r', signal, ...wish };
  return (await rollBack(test.host, request)).result;
}

/** The targets key was stolen: the root removes it, and the new targets do not list the releases that it signed. */
function revokeTargetsKey(test: TestHost): void {
  test.repository.rotate('targets');
  test.repository.targets.targets = {};
  test.repository.publish();
}

async function active(serial: number, options: TestHostOptions = {}): Promise<TestHost> {
  const test = testHost(options);
  for (let one = 1; one <= serial; one += 1) {
    await test.publish('access', { 'policy.yaml': `version: ${one}\n` }, { serial: one });
    assert.equal((await test.pull()).outcome, 'activated');
  }
  return test;
}

describe('an active release with keys that are not trusted any more', () => {
  it('is an alarm in the result, the status and the history; the policy stays', async () => {
    using test = await active(1);
    revokeTargetsKey(test);
    const end = await test.sync();
    assert.deepEqual([end.result.outcome, end.result.exitCode], ['degraded', 4]);
    assert.ok(codes(end.result).includes('UNTRUSTED_ACTIVE'));
    createRecorder().record(test.host, end, {});
    const [entry] = readHistory(test.host.paths, { limit: 1 });
    assert.ok(codes(entry?.result ?? end.result).includes('UNTRUSTED_ACTIVE'));
    const report = statusReport(test.host, { ...facts, last: end.result });
    assert.equal(statusLabel(report), 'untrusted');
    assert.equal(report.problems.filter((one) => one.code === 'UNTRUSTED_ACTIVE').length, 1);
    const [found] = report.untrusted ?? [];
    assert.deepEqual([found?.bundle, found?.serial, found?.active], ['access', 1, true]);
    assert.match(showStatus(report).lines.join('\n'), /UNTRUSTED access 1 in generation 1, which is active/);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('is an alarm also where the refresh fails after the root that removed the keys', async () => {
    using test = await active(1);
    test.repository.rotate('targets');
    const result = await test.pull();
    assert.equal(result.outcome, 'failed');
    assert.ok(codes(result).includes('UNTRUSTED_ACTIVE'), codes(result).join());
  });

  it('is reported again after a restart, before any poll', async () => {
    using test = await active(1);
    revokeTargetsKey(test);
    await test.pull();
    const report = statusReport(test.reopen(), facts);
    assert.ok(report.problems.some((one) => one.code === 'UNTRUSTED_ACTIVE'));
  });

  it('is trusted again when current metadata lists it, and ends when another release is active', async () => {
    for (const way of ['listed', 'replaced'] as const) {
      using test = await active(1);
      const listed = { ...test.repository.targets.targets };
      revokeTargetsKey(test);
      assert.ok(codes(await test.pull()).includes('UNTRUSTED_ACTIVE'));
      if (way === 'listed') {
        test.repository.targets.targets = listed;
        test.repository.publish();
      } else await test.publish('access', { 'policy.yaml': 'version: 9\n' }, { serial: 9 });
      const result = await test.pull();
      assert.deepEqual(codes(result), [], way);
    }
  });
});

describe('a release that still verifies', () => {
  it('is one that is not listed any more, with keys that are still trusted', async () => {
    using test = await active(1);
    test.repository.targets.targets = {};
    test.repository.publish();
    assert.ok(!codes(await test.pull()).includes('UNTRUSTED_ACTIVE'));
  });

  it('is one with targets that have expired, under another root with the same keys', async () => {
    using test = await active(1);
    await test.clock.advance(400 * 86_400_000);
    test.repository.root.expires = '2035-01-01T00:00:00Z';
    test.repository.bumpRoot();
    const result = await test.pull();
    assert.ok(!codes(result).includes('UNTRUSTED_ACTIVE'), codes(result).join());
  });

  it('is not one with a record of a lower threshold than now', async () => {
    using test = await active(1);
    const { repository } = test;
    repository.setKeys('targets', [...repository.keys.targets, makeKey()], 2);
    repository.bumpRoot();
    repository.targets.targets = {};
    repository.publish();
    assert.ok(codes(await test.pull()).includes('UNTRUSTED_ACTIVE'));
  });

  it('is not one with a record that was changed on disk', async () => {
    using test = await active(1);
    test.repository.targets.targets = {};
    test.repository.publish();
    assert.ok(!codes(await test.pull()).includes('UNTRUSTED_ACTIVE'));
    const [name = ''] = fs.readdirSync(join(test.host.paths.archives, 'access'));
    const path = join(test.host.paths.archives, 'access', name, 'targets.json');
    fs.writeFileSync(path, fs.readFileSync(path, 'utf8').replace('"serial":1', '"serial":7'));
    assert.ok(codes(await test.pullOn(test.reopen())).includes('UNTRUSTED_ACTIVE'));
  });

  it('may have an older record without the name of its role', async () => {
    using test = await active(1);
    test.repository.targets.targets = {};
    test.repository.publish();
    const [name = ''] = fs.readdirSync(join(test.host.paths.archives, 'access'));
    const path = join(test.host.paths.archives, 'access', name, 'record.json');
    const { vouchedBy, ...old } = JSON.parse(fs.readFileSync(path, 'utf8')) as Record<string, unknown>;
    assert.deepEqual(vouchedBy, ['targets']);
    fs.writeFileSync(path, JSON.stringify(old));
    assert.deepEqual(statusReport(test.reopen(), facts).untrusted, undefined);
    assert.ok(!codes(await test.pull()).includes('UNTRUSTED_ACTIVE'));
  });
});

describe('`untrusted: rollback`', () => {
  /** The current metadata lists serial 1 with another key, and not serial 2. */
  async function oneGoodOneRevoked(options: TestHostOptions = {}): Promise<TestHost> {
    const test = await active(1, options);
    const first = { ...test.repository.targets.targets };
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    await test.pull();
    test.repository.rotate('targets');
    test.repository.targets.targets = first;
    test.repository.publish();
    return test;
  }

  it('activates the newest retained generation that still verifies, and holds the replaced releases', async () => {
    using test = await oneGoodOneRevoked({ config: { untrusted: 'rollback' } });
    const end = await test.sync();
    assert.ok(codes(end.result).includes('UNTRUSTED_ACTIVE'));
    const left = await createUntrustedExit().afterCycle(test.host, end, signal);
    assert.deepEqual([left?.result.outcome, left?.result.generation], ['activated', 1]);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    assert.deepEqual(
      test.host.ledger.read().holds.map((one) => [one.serial, one.by]),
      [[2, 'writ']],
    );
    assert.ok(!codes(await test.pull()).includes('UNTRUSTED_ACTIVE'));
  });

  it('is not the default', async () => {
    using test = await oneGoodOneRevoked();
    const end = await test.sync();
    assert.equal(await createUntrustedExit().afterCycle(test.host, end, signal), undefined);
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
  });

  it('keeps the policy and the alarm where no retained generation verifies', async () => {
    using test = await active(2, { config: { untrusted: 'rollback' } });
    revokeTargetsKey(test);
    const end = await test.sync();
    const exit = createUntrustedExit();
    assert.equal(await exit.afterCycle(test.host, end, signal), undefined);
    const hint = end.result.problems.find((one) => one.code === 'UNTRUSTED_ACTIVE')?.hint ?? '';
    assert.match(hint, /`untrusted: rollback` is configured/);
    assert.doesNotMatch(hint, /writ rollback/);
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
    assert.ok(codes(await test.pull()).includes('UNTRUSTED_ACTIVE'));
  });
});

describe('a rollback', () => {
  it('does not activate a release that does not verify, also by force', async () => {
    using test = await active(2);
    const listed = { ...test.repository.targets.targets };
    test.repository.rotate('targets');
    test.repository.targets.targets = listed;
    test.repository.publish();
    await test.pull();
    for (const wish of [{}, { generation: 1 }, { generation: 1, force: true } as const]) {
      const result = await back(test, wish);
      assert.deepEqual([codes(result)[0], result.changed], ['RELEASE_UNTRUSTED', false]);
    }
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
    assert.match(
      showStatus(statusReport(test.host, facts)).lines.join('\n'),
      /UNTRUSTED access 1 in generation 1: no rollback activates it/,
    );
  });

  it('activates a withdrawn release only by force', async () => {
    using test = await active(1);
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2, withdrawn: [1] });
    await test.pull();
    assert.deepEqual(codes(await back(test)), ['RELEASE_WITHDRAWN']);
    assert.deepEqual(codes(await back(test, { generation: 1 })), ['RELEASE_WITHDRAWN']);
    assert.equal((await back(test, { force: true })).outcome, 'activated');
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('skips a withdrawn release where no generation was named', async () => {
    using test = await active(2);
    await test.publish('access', { 'policy.yaml': 'version: 3\n' }, { serial: 3, withdrawn: [2] });
    await test.pull();
    const result = await back(test);
    assert.deepEqual([result.outcome, result.generation], ['activated', 1]);
  });
});
