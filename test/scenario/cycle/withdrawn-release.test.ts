// A release that was taken back, as hosts live through it: running it, away meanwhile, asleep through several
// releases, and served a replay that no signature covers.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { promoteRelease } from '../../../src/publisher/release/promote.js';
import { withdrawRelease } from '../../../src/publisher/release/withdraw.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type PublishedHost, publishedHost } from '../../kit/repository/published-host.js';
import { changeOptions } from '../../kit/repository/sample-repository.js';

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

describe('a withdrawn release', () => {
  it('is left by the host that runs it, for the release that the signed act names', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    await publish(published, 'one', 'two');
    assert.deepEqual(await pulled(published), ['activated', 2, 'two']);
    await withdraw(published, 2);
    assert.deepEqual(await pulled(published), ['activated', 1, 'one']);
    assert.deepEqual(await pulled(published), ['unchanged', 1, 'one']);
    await publish(published, 'three');
    assert.deepEqual(await pulled(published), ['activated', 3, 'three']);
  });

  it('is left later by a host that was away meanwhile', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    await publish(published, 'one', 'two', 'three');
    await pulled(published);
    await withdraw(published, 3);
    await withdraw(published, 2);
    assert.deepEqual(await pulled(published), ['activated', 1, 'one']);
  });

  it('is left by a host that slept through further releases and their withdrawal', async () => {
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

  it('is not what a replay can feign: an older repository is refused, and the policy stays', async () => {
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
  });

  it('never comes to a host that had not seen it', async () => {
    using dir = tempDir();
    using published = publishedHost(dir, bundles);
    await publish(published, 'one');
    await pulled(published);
    await publish(published, 'two');
    await withdraw(published, 2);
    assert.deepEqual(await pulled(published), ['unchanged', 1, 'one']);
  });
});

describe('a rollback on a host', () => {
  it('does not bring a withdrawn release back, unless somebody forces it', async () => {
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

describe('a promoted release', () => {
  it('comes to the hosts of the other channel with its serial', async () => {
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
