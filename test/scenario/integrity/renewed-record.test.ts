// The record of an active release after its keys were replaced: a pull renews it while the current metadata lists the release,
// so that the release stays trusted when the metadata no longer lists it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readRecordedTarget } from '../../../src/agent/generations/recorded-target.js';
import { readRecord } from '../../../src/agent/generations/release-records.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { repair } from '../../kit/host/repair-bench.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';

const listers = ['targets', 'team-a'] as const;
type Lister = (typeof listers)[number];

async function activeHost(): Promise<TestHost> {
  const test = testHost();
  await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
  assert.equal((await test.pull()).outcome, 'activated');
  return test;
}

/** A new targets key lists the same release directly or through a new team. */
function replaceKey({ repository }: TestHost, by: Lister): void {
  repository.rotate('targets');
  if (by === 'team-a') {
    const team = repository.delegate('targets', { name: by, paths: ['access/*'] });
    team.signed.targets = repository.targets.targets;
    repository.targets.targets = {};
  }
  repository.publish();
}

/** As a hand-over to a team that has signed nothing. */
function unlist({ repository }: TestHost, by: Lister): void {
  const signed = repository.signedOf(by);
  signed.targets = {};
  if (by === 'team-a') signed.version += 1;
  repository.publish();
}

/** @returns a host on the same disk, and the list of its operations for renewals and staging */
function observed(test: TestHost, fail: (count: number) => boolean = () => false): [Host, string[]] {
  const operations: string[] = [];
  const before = ({ op }: { readonly op: string }): void => {
    if (!/^(repair|stage)\./.test(op)) return;
    operations.push(op);
    if (op.startsWith('repair.') && fail(operations.length))
      throw Object.assign(new Error('full'), { code: 'ENOSPC' });
  };
  return [test.reopen({ observer: { before } }), operations];
}

function isAlarm(result: CycleResult): boolean {
  return result.problems.some((one) => one.code === 'UNTRUSTED_ACTIVE');
}

function releaseOf({ paths }: Host): string {
  return fs.readdirSync(join(paths.archives, 'access'))[0] ?? '';
}

function signersOf(host: Host): readonly string[] {
  const { vouchedBy } = readRecordedTarget(host.paths, 'access', releaseOf(host));
  return vouchedBy.chain.map(({ role }) => role);
}

describe('the record of an active release after a key replacement', () => {
  it('is renewed once by an unchanged pull that finds the release listed by a new key', async () => {
    for (const by of listers) {
      using test = await activeHost();
      const [host, operations] = observed(test);
      const stagedAt = (): number => readRecord(host.paths, 'access', releaseOf(host)).stagedAtMs;
      const before = stagedAt();
      await test.clock.advance(60_000);
      replaceKey(test, by);
      assert.equal((await test.pullOn(host)).outcome, 'unchanged');
      assert.ok(operations.includes('repair.kept-write'), operations.join());
      assert.equal(stagedAt(), before);
      assert.deepEqual(signersOf(host), by === 'targets' ? [by] : ['targets', by]);
      operations.length = 0;
      await test.pullOn(host);
      assert.deepEqual(operations, []);
      unlist(test, by);
      assert.ok(!isAlarm(await test.pullOn(host)));
    }
  });

  it('is renewed by the next pull when the disk was full at any of the writes, and no pull fails', async () => {
    let failures = 0;
    for (let at = 1; failures === at - 1; at += 1) {
      using test = await activeHost();
      replaceKey(test, 'team-a');
      const [host] = observed(test, (count) => {
        if (count >= at) failures = at;
        return count >= at;
      });
      assert.equal((await test.pullOn(host)).outcome, 'unchanged', `${at}`);
      const next = test.reopen();
      assert.equal((await test.pullOn(next)).outcome, 'unchanged', `${at}`);
      assert.deepEqual(signersOf(next), ['targets', 'team-a'], `${at}`);
      unlist(test, 'team-a');
      assert.ok(!isAlarm(await test.pullOn(next)), `${at}`);
    }
    assert.ok(failures > 6, `${failures}`);
  });

  it('is renewed before the next refresh when the last pull ended after its refresh', async () => {
    for (const by of listers) {
      using test = await activeHost();
      replaceKey(test, by);
      const [ended, tried] = observed(test, () => true);
      await test.pullOn(ended);
      assert.ok(tried.includes('repair.kept-write'), tried.join());
      const next = test.reopen();
      assert.deepEqual(signersOf(next), ['targets']);
      unlist(test, by);
      assert.ok(!isAlarm(await test.pullOn(next)), by);
    }
  });

  it('is renewed before the refresh of a repair when the last pull ended after its refresh', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'other' }] });
    await test.publish('access', { 'p.yaml': 'a: 1\n' }, { serial: 1 });
    await test.publish('other', { 'p.yaml': 'a: 1\n' }, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    replaceKey(test, 'team-a');
    // The lost record of a release that the stored metadata does not list makes the repair refresh.
    const { targets } = test.repository.signedOf('team-a');
    for (const path of Object.keys(targets)) if (path.startsWith('other')) delete targets[path];
    test.repository.publish();
    const [ended, tried] = observed(test, () => true);
    await test.pullOn(ended);
    assert.ok(tried.includes('repair.kept-write'), tried.join());
    const next = test.reopen();
    assert.deepEqual(signersOf(next), ['targets']);
    unlist(test, 'team-a');
    for (const name of fs.readdirSync(join(next.paths.archives, 'other')))
      fs.rmSync(join(next.paths.archives, 'other', name, 'record.json'));
    await repair(next);
    assert.deepEqual(signersOf(next), ['targets', 'team-a']);
    assert.ok(!isAlarm(await test.pullOn(next)));
  });

  it('is renewed by a cycle that ends with an error after its refresh', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'other' }] });
    for (const name of ['access', 'other']) await test.publish(name, { 'p.yaml': 'a: 1\n' }, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    test.repository.rotate('targets');
    await test.publish('other', { 'p.yaml': 'a: 2\n' }, { serial: 2 });
    const before = ({ op }: { readonly op: string }): void => {
      if (op.startsWith('flush.generation')) throw new Error(op);
    };
    const ended = test.reopen({ observer: { before } });
    assert.equal((await test.pullOn(ended)).outcome, 'failed');
    const { vouchedBy } = readRecordedTarget(ended.paths, 'access', releaseOf(ended));
    const { targets } = test.repository.keys;
    const [voucher] = vouchedBy.chain;
    assert.ok(Buffer.from(voucher?.bytes ?? []).includes(targets[0]?.id ?? '-'));
  });

  it('is not renewed from stored metadata of a key that the stored root revokes', async () => {
    using test = await activeHost();
    const { repository } = test;
    replaceKey(test, 'targets');
    await test.pullOn(observed(test, () => true)[0]);
    repository.rotate('targets');
    repository.publish();
    repository.withhold('timestamp.json');
    // The host stores the new root, and the metadata of the revoked key remains beside it.
    assert.equal((await test.pullOn(observed(test, () => true)[0])).outcome, 'failed');
    unlist(test, 'targets');
    const [next, operations] = observed(test);
    assert.ok(isAlarm(await test.pullOn(next)));
    assert.deepEqual(operations, []);
  });

  it('is not renewed while the current metadata does not list the release', async () => {
    using test = await activeHost();
    const [host, operations] = observed(test);
    test.repository.rotate('targets');
    unlist(test, 'targets');
    assert.ok(isAlarm(await test.pullOn(host)));
    assert.deepEqual(operations, []);
  });
});
