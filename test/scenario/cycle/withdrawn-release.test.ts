// A withdrawn release on hosts that run it, that did not poll in the meantime, that missed several releases, and that are sent a
// replay without a valid signature.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { pause, resume } from '../../../src/agent/select/pause.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { promoteRelease } from '../../../src/publisher/release/promote.js';
import { withdrawRelease } from '../../../src/publisher/release/withdraw.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, type TestHostOptions, testHost } from '../../kit/host/test-host.js';
import { type PublishedHost, publishedHost } from '../../kit/repository/published-host.js';
import { changeOptions } from '../../kit/repository/sample-repository.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const bundle = 'dns-edge';
const bundles = { bundles: [{ name: bundle }] };

async function publish({ repository }: PublishedHost, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) await repository.publish({ policy: text });
}

async function withdraw({ repository }: PublishedHost, ...serials: readonly number[]): Promise<void> {
  await withdrawRelease({ bundle, serials, reason: '' }, changeOptions(repository));
}

async function pulled({ host }: PublishedHost): Promise<[string, number | undefined, string]> {
  const { result } = await host.sync();
  return [result.outcome, result.bundles[0]?.toSerial, host.read(`${bundle}/policy`)];
}

describe('a withdrawn release', longCase, () => {
  it(
    'is replaced on the host that runs it by the release that the signed withdrawal names',
    longCase,
    async () => {
      using dir = tempDir();
      using published = publishedHost(dir, bundles);
      await publish(published, 'one', 'two');
      assert.deepEqual(await pulled(published), ['activated', 2, 'two']);
      await withdraw(published, 2);
      assert.deepEqual(await pulled(published), ['activated', 1, 'one']);
      assert.deepEqual(await pulled(published), ['unchanged', 1, 'one']);
      await publish(published, 'three');
      assert.deepEqual(await pulled(published), ['activated', 3, 'three']);
    },
  );

  it('is replaced later on a host that did not poll in the meantime', longCase, async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    await publish(published, 'one', 'two', 'three');
    await pulled(published);
    await withdraw(published, 3);
    await withdraw(published, 2);
    assert.deepEqual(await pulled(published), ['activated', 1, 'one']);
  });

  it('is replaced on a host that missed later releases and their withdrawal', longCase, async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    await publish(published, 'one', 'two');
    await pulled(published);
    await publish(published, 'three', 'four');
    await withdraw(published, 4);
    await withdraw(published, 3, 2);
    assert.deepEqual(await pulled(published), ['activated', 1, 'one']);
    await publish(published, 'five');
    assert.deepEqual(await pulled(published), ['activated', 5, 'five']);
  });

  it(
    'cannot be simulated by a replay: an older repository is refused, and the policy stays',
    longCase,
    async () => {
      using dir = tempDir();
      using published = publishedHost(dir, bundles);
      await publish(published, 'one');
      published.keepCopy('old');
      await publish(published, 'two');
      await pulled(published);
      published.serveCopy('old');
      const { result } = await published.host.sync();
      assert.deepEqual([result.outcome, result.problems[0]?.code], ['failed', 'METADATA_ROLLBACK']);
      assert.equal(published.host.read(`${bundle}/policy`), 'two');
      published.serveRepository();
      await withdraw(published, 2);
      assert.deepEqual(await pulled(published), ['activated', 1, 'one']);
    },
  );

  it('is not activated on a host that did not have it', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    await publish(published, 'one');
    await pulled(published);
    await publish(published, 'two');
    await withdraw(published, 2);
    assert.deepEqual(await pulled(published), ['unchanged', 1, 'one']);
  });
});

describe('a rollback on a host', longCase, () => {
  it('does not activate a withdrawn release, except by force', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    const { host } = published.host;
    await publish(published, 'one', 'two');
    await pulled(published);
    await withdraw(published, 2);
    await pulled(published);
    const request = {
      generation: 1,
      by: 'anna',
      reason: 'test',
      signal: new AbortController().signal,
    };
    const refused = await rollBack(host, request);
    assert.equal(refused.result.problems[0]?.code, 'RELEASE_WITHDRAWN');
    assert.equal(published.host.read(`${bundle}/policy`), 'one');
    const forced = await rollBack(host, { ...request, force: true });
    assert.deepEqual([forced.result.problems, published.host.read(`${bundle}/policy`)], [[], 'two']);
  });
});

describe('a rollback on a host that now uses another channel', () => {
  for (const channel of ['canary', 'stable']) {
    it(`does not bring a release back that was withdrawn on ${channel} alone`, async () => {
      using dir = tempDir();
      const ofCanary = { bundles: [{ name: bundle, channel: 'canary' }] };
      using published = publishedHost(dir, ofCanary);
      const { repository } = published;
      const options = changeOptions(repository);
      for (const policy of ['one', 'two']) {
        await repository.publish({ policy }, { channel: 'canary' });
        await promoteRelease({ bundle, from: 'canary', to: 'stable' }, options);
        await pulled(published);
      }
      await withdrawRelease({ bundle, serials: [1], channel, reason: '' }, options);
      const host = published.host.reopen(bundles);
      await published.host.pullOn(host);
      const request = { generation: 1, by: 'anna', reason: 'test', signal: new AbortController().signal };
      const { result } = await rollBack(host, request);
      assert.equal(result.problems[0]?.code, 'RELEASE_WITHDRAWN');
      assert.equal(published.host.read(`${bundle}/policy`), 'two');
    });
  }
});

describe('a promoted release', longCase, () => {
  it('is activated on the hosts of the other channel with its serial', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    const { repository } = published;
    await publish(published, 'one');
    await pulled(published);
    await repository.publish({ policy: 'two' }, { channel: 'canary' });
    assert.deepEqual(await pulled(published), ['unchanged', 1, 'one']);
    await promoteRelease({ bundle, from: 'canary', to: 'stable' }, changeOptions(repository));
    assert.deepEqual(await pulled(published), ['activated', 2, 'two']);
  });
});

describe('a withdrawal of the active release', () => {
  const of = (serial: number, more = {}) => ({ serial, ...more });
  /** Of the finding that the active release is withdrawn. */
  const level = ({ host }: TestHost, last?: CycleResult): string | undefined => {
    const facts = { version: '', state: 'run', contact: { contact: {} }, problems: [], last } as const;
    const { findings } = judgeHostHealth(statusReport(host, facts));
    return findings.find(({ code }) => code === 'ACTIVE_WITHDRAWN')?.level;
  };
  const withdrawnBy = ({ host }: TestHost): number | undefined => {
    const facts = { version: '', state: 'run', contact: { contact: {} }, problems: [] } as const;
    return statusReport(host, facts).bundles[0]?.withdrawnBy;
  };
  const publishTo = (test: TestHost, text: string, info: { serial: number }) =>
    test.publish('access', { policy: text }, info);
  const active = (test: TestHost): string => test.read('access/policy');

  async function onTwo(options: TestHostOptions = {}): Promise<TestHost> {
    const test = testHost(options);
    await publishTo(test, 'one', of(1));
    await test.pull();
    await publishTo(test, 'two', of(2));
    assert.equal((await test.pull()).outcome, 'activated');
    return test;
  }

  it('is tried at each poll, although its target is remembered as refused and no other release is kept', async () => {
    const flag = '/nonexistent-writ-flag';
    const run = ['sh', '-c', `grep -q two {bundle}/policy || test -e ${flag}`] as const;
    const checks = [{ kind: 'run', name: 'c', run, timeoutMs: 60_000 }] as const;
    using test = testHost({ bundles: [{ name: 'access', checks }] });
    await publishTo(test, 'two', of(2));
    await test.pull();
    await publishTo(test, 'one', of(1, { withdrawn: [2] }));
    const first = await test.pull();
    assert.deepEqual([first.outcome, active(test)], ['rejected', 'two']);
    const second = await test.pull();
    assert.deepEqual(
      [second.outcome, second.problems[0]?.code],
      ['rejected', 'CHECK_FAILED'],
      'it was tried again',
    );
    assert.equal(level(test, second), 'critical');
  });

  it('is not delayed by the hold of a rollback on a newer release', async () => {
    using test = await onTwo();
    await publishTo(test, 'three', of(3));
    await test.pull();
    await rollBack(test.host, { by: 'anna', signal: new AbortController().signal });
    assert.equal(active(test), 'two');
    await publishTo(test, 'one', of(1, { withdrawn: [2, 3] }));
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(active(test), 'one');
  });

  it('does not wait for the pace of a group', async () => {
    const driver = scriptedDriver({ a: confirms });
    for (const when of [[], ['policy']]) {
      using test = testHost({ groups: { app: { driver, config: { minIntervalMs: 600_000, when } } } });
      await publishTo(test, 'two', of(2));
      await test.pull();
      await publishTo(test, 'three', of(3));
      assert.equal((await test.pull()).outcome, 'deferred');
      await publishTo(test, 'one', of(1, { withdrawn: [2, 3] }));
      assert.equal((await test.pull()).outcome, 'activated');
    }
  });

  it('is stopped by a pause: deferred, and critical', async () => {
    using test = await onTwo();
    pause(test.host, { by: 'anna', reason: 'night' });
    await publishTo(test, 'one', of(1, { withdrawn: [2] }));
    const result = await test.pull();
    assert.deepEqual([result.outcome, active(test)], ['deferred', 'two']);
    assert.equal(level(test, result), 'critical');
    assert.equal(withdrawnBy(test), 1);
    resume(test.host);
    const free = await test.pull();
    assert.equal(active(test), 'one');
    assert.equal(level(test, free), undefined);
    assert.equal(withdrawnBy(test), undefined);
  });
});
