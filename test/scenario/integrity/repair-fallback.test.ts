// Damage to releases that cannot be downloaded again: an older generation is activated, or the policy stays unchanged, and no
// bundle is lost.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { repairActive } from '../../../src/agent/integrity/repair.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import {
  assertWhole,
  type Bench,
  bench,
  codes,
  files,
  findDamage,
  repair,
  scrubOnce,
  short,
} from '../../kit/host/repair-bench.js';

describe('a cycle without a `current` and without a download', () => {
  for (const force of ['yes', 'no'] as const) {
    it(`never ends at less than there was (force: ${force})`, async () => {
      using one = await bench({ bundles: [{ name: 'access' }, { name: 'zones' }] }, []);
      const { test, host } = one;
      await test.publish('access', files(1), { serial: 1 });
      await test.publish('zones', { z: '1' }, { serial: 7 });
      await test.pull();
      const archives = [...test.repository.files.keys()].filter((path) => path.startsWith('targets/'));
      for (const missing of [archives, archives.filter((path) => path.includes('zones'))]) {
        fs.rmSync(host.paths.current);
        const taken = missing.map((path) => [path, test.repository.files.get(path)] as const);
        for (const path of missing) test.repository.files.delete(path);
        assert.equal((await test.pull({ force })).outcome, 'failed');
        assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
        assert.equal(test.read('zones/z'), '1');
        for (const [path, bytes] of taken) if (bytes !== undefined) test.repository.files.set(path, bytes);
      }
      assert.notEqual((await test.pull()).outcome, 'failed');
      assert.deepEqual(await findDamage(host), []);
    });
  }

  for (const gone of [
    'generations',
    'bundles',
    'policy',
    'archives',
    'staging',
    'partials',
    'trust',
  ] as const) {
    it(`makes its places again where somebody removed them from under a running agent: ${gone}`, async () => {
      using one = await bench();
      const { test, host } = one;
      fs.rmSync(host.paths[gone], { recursive: true });
      await test.publish('access', files(3), { serial: 3 });
      const { outcome, bundles } = await test.pull();
      assert.equal(outcome, 'activated', JSON.stringify(bundles));
      assert.equal(bundles[0]?.toSerial, 3);
      assert.deepEqual(await findDamage(host), []);
    });
  }

  it('makes no empty generation where every bundle of the policy is lost', async () => {
    using one = await bench();
    const { test, host } = one;
    fs.rmSync(host.paths.current);
    fs.rmSync(join(host.paths.generations, '2'), { recursive: true });
    for (const path of [...test.repository.files.keys()].filter((name) => name.startsWith('targets/')))
      test.repository.files.delete(path);
    for (const force of ['yes', 'no'] as const) {
      assert.equal((await test.pull({ force })).outcome, 'failed');
      assert.equal(fs.existsSync(host.paths.current), false);
    }
  });
});

describe('a repair without access to the release', () => {
  const spoil = (one: Bench): void => {
    fs.writeFileSync(one.tree('policy.yaml'), 'VERSION: 2\n');
    fs.rmSync(one.kept('archive.tar.br'));
  };

  it('activates the previous generation, reports it, and the next poll activates the release again', async () => {
    using one = await bench();
    const { host, driver, test } = one;
    const { mtimeMs } = fs.statSync(one.tree('policy.yaml'));
    spoil(one);
    one.network.isUp = false;
    const end = await repair(host);
    assert.deepEqual(codes(end), ['degraded', 'REPAIRED_BY_PREVIOUS']);
    assert.deepEqual([fs.readlinkSync(host.paths.current), driver.notified], ['generations/1', ['a 1']]);
    const back = fs.statSync(join(host.paths.current, 'access/policy.yaml'));
    assert.ok(back.mtimeMs > mtimeMs, 'a daemon that goes by the time of a file reads it again');
    assertWhole(one, 1);
    assert.deepEqual([host.ledger.read().previous, host.ledger.read().holds], [undefined, []]);
    one.network.isUp = true;
    assert.equal((await test.pull()).outcome, 'activated');
    assertWhole(one, 2);
    assert.deepEqual(await findDamage(host), []);
  });

  it('is recorded until the release is intact again, and status names the older bundle', async () => {
    using one = await bench();
    spoil(one);
    assert.equal((await scrubOnce(one.host, { contents: 'digests', repair: 'yes' })).outcome, 'repaired');
    assert.equal(one.host.ledger.read().scrub?.behind?.generation, 1);
  });

  it('does not activate an older generation where it is asked to end', async () => {
    using one = await bench();
    spoil(one);
    const stop = new AbortController();
    const source = (served: RepositorySource): RepositorySource => ({
      ...served,
      stream: () => {
        stop.abort();
        throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
      },
    });
    const host = one.test.reopen({ source });
    const end = await repairActive(host, { cycle: 'c-ab', signal: stop.signal, download: 'yes' });
    assert.deepEqual(codes(end), ['failed', 'INTERRUPTED']);
    assert.deepEqual([fs.readlinkSync(host.paths.current), one.driver.notified], ['generations/2', []]);
  });

  it('does not use the network at a start', async () => {
    using one = await bench();
    spoil(one);
    one.test.repository.takeRequests();
    assert.deepEqual(codes(await repair(one.host, 'no')), ['degraded', 'REPAIRED_BY_PREVIOUS']);
    assert.deepEqual(one.test.repository.takeRequests(), []);
  });

  it('keeps the damaged policy, and reports it, where no older generation is intact', async () => {
    using one = await bench({}, [2]);
    const { host, driver } = one;
    spoil(one);
    one.network.isUp = false;
    const end = await repair(host);
    assert.deepEqual(codes(end), ['failed', 'REPAIR_FAILED']);
    assert.deepEqual([fs.readlinkSync(host.paths.current), driver.notified], ['generations/1', []]);
    assert.equal(one.test.read('access/policy.yaml'), 'VERSION: 2\n');
    one.network.isUp = true;
    assert.deepEqual(codes(await repair(host)), ['activated']);
    assertWhole(one, 2);
  });

  it('skips an older generation that shares the damaged tree', async () => {
    using one = await bench({ bundles: [{ name: 'access' }, { name: 'zones' }] }, []);
    const { test, host } = one;
    await test.publish('access', files(1), { serial: 1 });
    for (const serial of [1, 2]) {
      await test.publish('zones', { z: String(serial) }, { serial });
      await test.pull();
    }
    fs.writeFileSync(join(host.paths.current, 'access/policy.yaml'), 'x');
    fs.rmSync(join(host.paths.archives, 'access'), { recursive: true });
    one.network.isUp = false;
    assert.deepEqual(codes(await repair(host)), ['failed', 'REPAIR_FAILED']);
    assert.equal(fs.readlinkSync(host.paths.current), 'generations/2');
  });

  it('does not replace a `current` that Writ did not make', async () => {
    using one = await bench();
    const { host } = one;
    fs.rmSync(host.paths.current);
    fs.symlinkSync('/etc', host.paths.current);
    assert.deepEqual((await findDamage(host)).map(short), ['current type .']);
    assert.deepEqual(codes(await repair(host)), ['failed', 'REPAIR_FAILED']);
    assert.equal(fs.readlinkSync(host.paths.current), '/etc');
  });
});
