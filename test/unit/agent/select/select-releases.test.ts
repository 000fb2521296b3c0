import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { cycleOn } from '../../../kit/agent/cycle-on.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { testHost } from '../../../kit/host/test-host.js';

const policy = (version: number) => ({ 'policy.yaml': `version: ${version}\n` });
const notified = (result: CycleResult) =>
  result.bundles.map((one) => [one.bundle, one.outcome, one.problem?.code]);

describe('a lower serial', () => {
  it('is refused as a replay, also in a forced pull', async () => {
    using test = testHost();
    await test.publish('access', policy(2), { serial: 2 });
    await test.pull();
    await test.publish('access', policy(1), { serial: 1 });
    for (const force of ['no', 'yes'] as const) {
      const result = await test.pull({ force });
      assert.deepEqual([result.exitCode, notified(result)], [3, [['access', 'rejected', 'SERIAL_ROLLBACK']]]);
    }
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
    assert.deepEqual(test.host.refusals.read().refusals, [], 'a replay is no fault of the release');
  });

  it('is accepted when all accepted serials above it are withdrawn, and is the base of the rule from then on', async () => {
    using test = testHost();
    for (const serial of [1, 2, 3]) {
      await test.publish('access', policy(serial), { serial });
      await test.pull();
    }
    await test.publish('access', policy(1), { serial: 1, withdrawn: [3] });
    assert.deepEqual(notified(await test.pull()), [['access', 'rejected', 'SERIAL_ROLLBACK']]);
    await test.publish('access', policy(1), { serial: 1, withdrawn: [2, 3] });
    const back = await test.pull();
    assert.deepEqual([back.outcome, back.generation], ['activated', 4]);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    await test.publish('access', policy(3), { serial: 3 });
    assert.equal(notified(await test.pull())[0]?.[1], 'activated', 'a withdrawn one may be offered again');
    await test.publish('access', policy(2), { serial: 2 });
    assert.deepEqual(notified(await test.pull()), [['access', 'rejected', 'SERIAL_ROLLBACK']]);
  });

  it('is accepted once when the configuration names another channel', async () => {
    using test = testHost();
    await test.publish('access', policy(5), { serial: 5 });
    await test.pull();
    await test.publish('access', policy(3), { serial: 3, channel: 'beta' });
    const beta = test.reopen({ bundles: [{ name: 'access', channel: 'beta' }] });
    assert.equal((await cycleOn(beta)).outcome, 'activated');
    assert.equal(test.read('access/policy.yaml'), 'version: 3\n');
    await test.publish('access', policy(2), { serial: 2, channel: 'beta' });
    assert.deepEqual(notified(await cycleOn(beta)), [['access', 'rejected', 'SERIAL_ROLLBACK']]);
    assert.equal((await cycleOn(test.reopen())).outcome, 'activated', 'and back to what stable had');
    assert.equal(test.read('access/policy.yaml'), 'version: 5\n');
  });
});

describe('one serial with two contents', () => {
  it('is refused', async () => {
    using test = testHost();
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    await test.publish('access', policy(2), { serial: 1 });
    assert.deepEqual(notified(await test.pull()), [['access', 'rejected', 'SERIAL_REUSED']]);
  });
});

describe('a bundle that the repository does not list', () => {
  it('is a failure if the host has no release of it, and does not delay other bundles', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'dns-edge' }] });
    await test.publish('access', policy(1), { serial: 1 });
    const result = await test.pull();
    assert.equal(result.exitCode, 1);
    assert.deepEqual(notified(result), [
      ['access', 'activated', undefined],
      ['dns-edge', 'failed', 'TARGET_UNKNOWN'],
    ]);
  });

  it('stays active and is reported if it was listed before', async () => {
    using test = testHost();
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    test.repository.targets.targets = {};
    test.repository.publish();
    const result = await test.pull();
    assert.deepEqual([result.exitCode, notified(result)], [0, [['access', 'unchanged', 'TARGET_UNKNOWN']]]);
    assert.equal(result.problems[0]?.code, 'TARGET_UNKNOWN');
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('is not in the next generation when the configuration does not name it any more', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'dns-edge' }] });
    await test.publish('access', policy(1), { serial: 1 });
    await test.publish('dns-edge', { 'block.rpz': 'x' }, { serial: 1 });
    await test.pull();
    const result = await cycleOn(test.reopen({ bundles: [{ name: 'access' }] }));
    assert.deepEqual([result.outcome, result.generation], ['activated', 2]);
    assert.throws(() => test.read('dns-edge/block.rpz'), { code: 'ENOENT' });
  });
});

describe('bundles that move together', () => {
  const never = {
    kind: 'run',
    name: 'no two',
    run: ['sh', '-c', '! grep -q 2 {bundle}/*'],
    timeoutMs: 60_000,
  } as const;
  const options = {
    bundles: [{ name: 'access' }, { name: 'dns-edge', checks: [never] }, { name: 'other' }],
    config: { together: [['access', 'dns-edge']] },
  };

  it('are held back together when one of them is refused, and only the refused one is remembered', async () => {
    using test = testHost(options);
    for (const serial of [1, 2]) {
      for (const { name } of options.bundles) await test.publish(name, policy(serial), { serial });
      if (serial === 1) assert.equal((await test.pull()).exitCode, 0);
    }
    const result = await test.pull();
    assert.equal(result.exitCode, 3);
    assert.deepEqual(notified(result), [
      ['access', 'rejected', 'CHECK_FAILED'],
      ['dns-edge', 'rejected', 'CHECK_FAILED'],
      ['other', 'activated', undefined],
    ]);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    assert.equal(test.read('other/policy.yaml'), 'version: 2\n');
    assert.deepEqual(
      test.host.refusals.read().refusals.map((one) => one.bundle),
      ['dns-edge'],
    );
    await test.publish('dns-edge', policy(3), { serial: 3 });
    assert.equal((await test.pull()).exitCode, 0);
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
  });

  it('move one without the other when the other has nothing new', async () => {
    using test = testHost(options);
    for (const { name } of options.bundles) await test.publish(name, policy(1), { serial: 1 });
    await test.pull();
    await test.publish('access', policy(3), { serial: 3 });
    assert.equal((await test.pull()).exitCode, 0);
    assert.equal(test.read('access/policy.yaml'), 'version: 3\n');
  });
});

describe('a block', () => {
  it('rejects its releases, is reported, and ends with a newer release or a forced pull', async () => {
    using test = testHost();
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    await test.publish('access', policy(2), { serial: 2 });
    const digest = test.host.client.knownTarget('access', 'stable');
    assert.equal(digest?.release.serial, 1, 'not refreshed yet');
    await test.host.client.refresh();
    const manifestDigest = test.host.client.knownTarget('access', 'stable')!.release.manifest.digest;
    const { ledger } = test.host;
    const blocked = { reason: 'crashed three times', atMs: 0, manifestDigests: [manifestDigest] };
    setLedger(ledger, { blocked });
    const result = await test.pull();
    assert.deepEqual([result.exitCode, notified(result)], [6, [['access', 'blocked', 'ACTIVATION_BLOCKED']]]);
    await test.publish('access', policy(3), { serial: 3 });
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(ledger.read().blocked, undefined);
  });
});
