// Checks that compare a candidate with the active release: the built-in one, and a command with {current}. A return to an older
// release, and a first release, are not refused because of their size.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chooseChangeBase } from '../../../../src/agent/checks/check-candidate.js';
import type { BundleConfig } from '../../../../src/core/config/config.js';
import type { ReleaseInfo } from '../../../../src/core/release/release.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { testHost } from '../../../kit/host/test-host.js';
import { manifestFile } from '../../../kit/repository/archive-builder.js';
import { type PublishedHost, publishedHost } from '../../../kit/repository/published-host.js';
import { changeOptions } from '../../../kit/repository/sample-repository.js';

const bundle = 'dns-edge';

const size: BundleConfig['checks'][number] = {
  kind: 'change',
  name: 'size',
  maxRemovedPercent: 50,
  bytesPercent: { min: 50, max: 200 },
  files: ['views/**'],
};

const list = (count: number): string => 'line\n'.repeat(count);

async function pulled({ host }: PublishedHost) {
  const { outcome, bundles } = (await host.sync()).result;
  return { outcome, serial: bundles[0]?.toSerial, problem: bundles[0]?.problem };
}

describe('a change check on a host', () => {
  it('accepts a first release, and refuses one that is too different from it', longCase, async () => {
    using dir = tempDir();
    using published = publishedHost(dir, { bundles: [{ name: bundle, checks: [size] }] });
    await published.repository.publish({ list: list(100), 'views/eu': 'eu\n' });
    assert.equal((await pulled(published)).outcome, 'activated');
    await published.repository.publish({ list: list(40), 'views/eu': 'eu\n' });
    const { outcome, problem } = await pulled(published);
    assert.deepEqual([outcome, problem?.code], ['rejected', 'CHECK_FAILED']);
    assert.equal(problem?.facts?.['check'], 'size');
    assert.equal(problem?.facts?.['expected'], '50% to 200% of 503 B');
    assert.equal(problem?.facts?.['actual'], '203 B (40.3%)');
    assert.equal(published.host.read(`${bundle}/list`), list(100));
    await published.repository.publish({ list: list(100) });
    assert.equal((await pulled(published)).problem?.facts?.['actual'], 'views/eu removed');
    await published.repository.publish({ list: list(60), 'views/eu': 'eu\n' });
    assert.deepEqual((await pulled(published)).outcome, 'activated');
  });

  it('accepts the older release after a withdrawal, whatever the sizes are', longCase, async () => {
    using dir = tempDir();
    using published = publishedHost(dir, { bundles: [{ name: bundle, checks: [size] }] });
    await published.repository.publish({ list: list(10) });
    await published.repository.publish({ list: list(1000), 'views/eu': 'eu\n' });
    assert.equal((await pulled(published)).serial, 2);
    await withdrawRelease({ bundle, serials: [2], reason: '' }, changeOptions(published.repository));
    const back = await pulled(published);
    assert.deepEqual([back.outcome, back.serial], ['activated', 1]);
    assert.equal(published.host.read(`${bundle}/list`), list(10));
  });

  it('compares a newer release with a withdrawn one that is still active', longCase, async () => {
    using dir = tempDir();
    using published = publishedHost(dir, { bundles: [{ name: bundle, checks: [size] }] });
    await published.repository.publish({ list: list(100) });
    await published.repository.publish({ list: list(101) });
    await pulled(published);
    await published.repository.publish({ list: list(1) }, { withdraw: [2] });
    assert.equal((await pulled(published)).problem?.code, 'CHECK_FAILED');
  });

  it('compares each bundle with its own active release, and accepts the unchanged one', async () => {
    using test = testHost({
      bundles: [
        { name: 'access', checks: [size] },
        { name: 'limits', checks: [size] },
      ],
    });
    await test.publish('access', { list: list(100) }, { serial: 1 });
    await test.publish('limits', { list: list(5) }, { serial: 1 });
    await test.pull();
    await test.publish('access', { list: list(10) }, { serial: 2 });
    await test.publish('limits', { list: list(6) }, { serial: 2 });
    const { bundles } = await test.pull();
    assert.deepEqual(
      bundles.map(({ bundle: name, outcome }) => [name, outcome]),
      [
        ['access', 'rejected'],
        ['limits', 'activated'],
      ],
    );
  });
});

describe('changeBaseOf', () => {
  const release = (serial: number): ReleaseInfo => {
    const { digest } = manifestFile({ path: 'list', content: `${serial}` });
    const signed = { bundle, channel: 'stable', serial, revision: '', createdAtMs: 0, withdrawn: [] };
    return { ...signed, manifest: { digest, length: 100 } };
  };
  const manifest = { files: [manifestFile({ path: 'list', content: list(5) })] };
  const active = new Map([[bundle, { manifest, record: { release: release(7) } }]]);

  it('is the active release, also for an unchanged bundle', () => {
    for (const offered of [release(8), undefined]) {
      const base = chooseChangeBase(bundle, offered, { active });
      assert.ok(base.kind === 'active' && base.manifest === manifest);
    }
  });

  it('is none for a settled release', () => {
    const exempt = { kind: 'exempt', reason: 'settled before' };
    assert.deepEqual(chooseChangeBase(bundle, release(8), { active, settled: [release(8)] }), exempt);
    assert.equal(chooseChangeBase(bundle, release(8), { active, settled: [release(9)] }).kind, 'active');
  });
});
