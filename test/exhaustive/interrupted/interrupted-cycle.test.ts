// Kills a cycle before and after each of its labelled file operations, then starts again: one intact generation is active, the
// old or the new one, and the next cycle without faults succeeds. A run provides the labels, so a new operation gets its
// cases.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { recoverHost } from '../../../src/agent/startup/recover-host.js';
import { sampled } from '../../kit/assert/sample.js';
import { type OperationTrap, operationTrap } from '../../kit/disk/operation-trap.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

async function hostWithTwoReleases(observer: OperationTrap): Promise<TestHost> {
  const test = testHost({ groups: { app: { driver: scriptedDriver({ a: confirms }) } }, observer });
  await test.publish('access', { 'a.yaml': 'version: 1\n', 'b.yaml': 'version: 1\n' }, { serial: 1 });
  await test.pull();
  await test.publish('access', { 'a.yaml': 'version: 2\n', 'b.yaml': 'version: 2\n' }, { serial: 2 });
  observer.seen.length = 0;
  return test;
}

async function labelsOfAnUpdate(): Promise<string[]> {
  const observer = operationTrap();
  using test = await hostWithTwoReleases(observer);
  assert.equal((await test.pull()).outcome, 'activated');
  return [...observer.seen];
}

describe('a cycle that is killed', async () => {
  const labels = await labelsOfAnUpdate();
  it('has the operations of a swap, in their order', () => {
    const order = [
      'swap.journal:rename',
      'swap.link:create',
      'swap.link:rename',
      'swap.link:flush-directory',
      'commit.journal',
    ];
    const places = order.map((label) => labels.indexOf(label));
    assert.ok(
      places.every((place) => place >= 0),
      JSON.stringify(labels),
    );
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
    );
  });
  for (const [index, label] of sampled([...labels.entries()])) {
    for (const when of ['before', 'after'] as const) {
      it(`leaves one intact generation when killed ${when} operation ${index}, ${label}`, async () => {
        const observer = operationTrap();
        using test = await hostWithTwoReleases(observer);
        observer.arm(index, when);
        await test.pull().catch(() => undefined);
        assert.ok(observer.isSprung(), 'the operation was reached');
        await requireCleanRestart(test);
      });
    }
  }
  const errnos = ['ENOSPC', 'EIO', 'EROFS', 'EMFILE'];
  for (const [index, label] of sampled([...labels.entries()])) {
    const errno = errnos[index % errnos.length]!;
    it(`reports a disk failure, not a refused bundle, when operation ${index}, ${label}, fails with ${errno}`, async () => {
      const observer = operationTrap();
      using test = await hostWithTwoReleases(observer);
      let left = index;
      observer.before = () => {
        left -= 1;
        if (left === -1) throw Object.assign(new Error(errno), { code: errno });
      };
      const result = await test.pull();
      assert.ok(left < 0, 'the operation was reached');
      assert.notEqual(result.outcome, 'rejected');
      assert.deepEqual(test.host.refusals.read().refusals, []);
      await requireCleanRestart(test);
    });
  }
});

/** Requires that a restart finds one intact policy without left-over files, and that the next pull succeeds. */
async function requireCleanRestart(test: TestHost): Promise<void> {
  requireIntactPolicy(test);
  const host = test.reopen({ observer: {} });
  const signal = new AbortController().signal;
  await recoverHost(host, { cycle: newCycleId(), signal });
  requireIntactPolicy(test);
  assert.equal(fs.existsSync(host.paths.journal), false);
  assert.deepEqual(fs.readdirSync(host.paths.staging), []);
  const { result } = await syncCycle(host, { cycle: newCycleId(), trigger: 'force', force: 'yes', signal });
  assert.equal(result.exitCode, 0, JSON.stringify(result.problems));
  assert.equal(test.read('access/a.yaml'), 'version: 2\n');
  assert.deepEqual(
    fs.readdirSync(host.paths.policy).sort(),
    ['bundles', 'current', 'generations'],
    'no temporary link is left',
  );
}

function requireIntactPolicy(test: TestHost): void {
  assert.equal(test.read('access/a.yaml'), test.read('access/b.yaml'));
}

describe('a commit that fails', () => {
  it('keeps the new generation that workers confirmed, reports its failure, and is repeated by the next start', async () => {
    const observer = operationTrap();
    using test = await hostWithTwoReleases(observer);
    observer.before = ({ op }) => {
      if (op === 'commit.journal') throw Object.assign(new Error('EIO'), { code: 'EIO' });
    };
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.exitCode, result.changed], ['failed', 1, true]);
    assert.equal(result.problems[0]?.code, 'DISK_FAILED');
    assert.equal(test.read('access/a.yaml'), 'version: 2\n');
    await requireCleanRestart(test);
  });
});
