// Damage to the retained copies of which a tree is made again: repaired without a swap, or by a download if the tree is lost too.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { flipBit, putFifo } from '../../kit/disk/damage-file.js';
import {
  assertWhole,
  bench,
  codes,
  type Damage,
  files,
  findDamage,
  repair,
  short,
} from '../../kit/host/repair-bench.js';
import { setLedger } from '../../kit/host/set-ledger.js';

/** Damage to the retained copies, which is repaired without a swap. */
const keptDamage: Readonly<Record<string, Damage>> = {
  'a bit of the kept archive': {
    does: ({ kept }) => flipBit(kept('archive.tar.br'), 9),
    finds: ['archive changed .'],
  },
  'half of the kept archive': {
    does: ({ kept }) => fs.truncateSync(kept('archive.tar.br'), 20),
    finds: ['archive changed .'],
  },
  'no kept archive': { does: ({ kept }) => fs.rmSync(kept('archive.tar.br')), finds: ['archive missing .'] },
  'a FIFO for the kept archive': {
    does: ({ kept }) => putFifo(kept('archive.tar.br')),
    finds: ['archive type .'],
  },
  'another manifest': {
    does: ({ kept }) => fs.appendFileSync(kept('manifest.json'), ' '),
    finds: ['manifest changed .'],
  },
  'no manifest': { does: ({ kept }) => fs.rmSync(kept('manifest.json')), finds: ['manifest missing .'] },
  'a FIFO for the manifest': {
    does: ({ kept }) => putFifo(kept('manifest.json')),
    finds: ['manifest type .'],
  },
  'a FIFO for the record': {
    does: ({ kept }) => putFifo(kept('record.json')),
    finds: ['record type .'],
  },
  'half a record': {
    does: ({ kept }) => fs.truncateSync(kept('record.json'), 40),
    finds: ['record changed .'],
  },
  'a record that says more than was signed': {
    does: ({ kept }) => {
      const text = fs.readFileSync(kept('record.json'), 'utf8');
      fs.writeFileSync(kept('record.json'), text.replace('"withdrawn":[]', '"withdrawn":[7]'));
    },
    finds: ['record changed .'],
  },
  'no signed part of the record': {
    does: ({ kept }) => fs.rmSync(kept('targets.json')),
    finds: ['record changed .'],
  },
  'no kept release at all': {
    does: ({ kept }) => fs.rmSync(kept(), { recursive: true }),
    finds: ['record missing .', 'manifest missing .'],
  },
};

describe('a forced pull', () => {
  it(
    'repairs damage in the same move: the workers of it are notified, and intact bundles keep their trees',
    longCase,
    async () => {
      using one = await bench({ bundles: [{ name: 'access' }, { name: 'zones' }] }, []);
      const { test, host, driver } = one;
      for (const serial of [1, 2]) {
        await test.publish('access', files(serial), { serial });
        await test.publish('zones', { z: String(serial) }, { serial });
        await test.pull();
      }
      driver.notified.length = 0;
      const zones = fs.realpathSync(join(host.paths.current, 'zones'));
      fs.writeFileSync(join(host.paths.current, 'access/policy.yaml'), 'x');
      const result = await test.pull({ force: 'yes' });
      assert.deepEqual([result.outcome, result.generation, driver.notified], ['activated', 3, ['a 3']]);
      assert.equal(fs.realpathSync(join(host.paths.current, 'zones')), zones);
      assert.equal(host.ledger.read().previous, 1, 'no rollback goes to the damaged one');
      assert.deepEqual(await findDamage(host), []);
      assert.equal((await test.pull({ force: 'yes' })).outcome, 'unchanged');
    },
  );

  it('repairs a link to another tree of Writ by a new generation', async () => {
    using one = await bench();
    const { host, driver } = one;
    const [old = ''] = fs
      .readdirSync(join(host.paths.bundles, 'access'))
      .filter((name) => name.endsWith('.1'));
    fs.rmSync(join(host.paths.current, 'access'));
    fs.symlinkSync(`../../bundles/access/${old}`, join(host.paths.current, 'access'));
    const result = await one.test.pull({ force: 'yes' });
    assert.deepEqual([result.outcome, result.generation, driver.notified], ['activated', 3, ['a 3']]);
    assert.deepEqual(await findDamage(host), []);
    assertWhole(one, 2);
  });

  it('repairs a generation that other users cannot enter any more, also where every bundle is intact', async () => {
    using one = await bench();
    fs.chmodSync(join(one.host.paths.generations, '2'), 0o700);
    const result = await one.test.pull({ force: 'yes' });
    assert.deepEqual([result.outcome, result.generation], ['activated', 3]);
    assert.deepEqual(await findDamage(one.host), []);
  });

  it('writes damaged retained copies again, without a swap', async () => {
    using one = await bench();
    fs.rmSync(one.kept('archive.tar.br'));
    assert.equal((await one.test.pull({ force: 'yes' })).outcome, 'unchanged');
    assert.deepEqual([await findDamage(one.host), one.driver.notified], [[], []]);
  });
});

describe('damage to retained copies', () => {
  for (const [name, { does, finds }] of Object.entries(keptDamage)) {
    it(`is mended without a swap: ${name}`, async () => {
      using one = await bench();
      const { host, driver } = one;
      does(one);
      assert.deepEqual((await findDamage(host)).map(short), finds);
      const end = await repair(host);
      assert.deepEqual([codes(end), end?.result.changed], [['unchanged'], false]);
      assert.deepEqual([fs.readlinkSync(host.paths.current), driver.notified], ['generations/2', []]);
      assert.deepEqual(await findDamage(host), []);
      assertWhole(one, 2);
    });

    it(`together with the tree is mended by a download of the very same release: ${name}`, async () => {
      using one = await bench();
      does(one);
      fs.writeFileSync(one.tree('policy.yaml'), 'VERSION: 2\n');
      assert.deepEqual(codes(await repair(one.host)), ['activated']);
      assert.equal(fs.readlinkSync(one.host.paths.current), 'generations/3');
      assertWhole(one, 2);
      assert.deepEqual(await findDamage(one.host), []);
    });
  }

  for (const [name, { does, finds }] of Object.entries(keptDamage)) {
    for (const download of ['yes', 'no'] as const)
      it(`never takes a whole policy back, with the network cut and download ${download}: ${name}`, async () => {
        using one = await bench();
        const { host, driver } = one;
        does(one);
        one.network.isUp = false;
        const end = await repair(host, download);
        assert.deepEqual([fs.readlinkSync(host.paths.current), driver.notified], ['generations/2', []]);
        assertWhole(one, 2);
        // Only the archive must be downloaded.
        const isArchive = name.includes('archive') || name.includes('release');
        const left = isArchive ? [finds.find((one) => one.startsWith('archive')) ?? 'archive missing .'] : [];
        assert.deepEqual((await findDamage(host)).map(short), left);
        assert.equal(end?.result.outcome, isArchive ? 'failed' : 'unchanged');
        one.network.isUp = true;
        await repair(host);
        assert.deepEqual(await findDamage(host), []);
      });
  }

  it('is repaired without unpacking where the archive is intact, also on a full disk', async () => {
    using one = await bench();
    const operations: string[] = [];
    const host = one.test.reopen({ observer: { before: ({ op }) => void operations.push(op) } });
    fs.truncateSync(one.kept('record.json'), 0);
    fs.rmSync(one.kept('manifest.json'));
    assert.deepEqual(codes(await repair(host, 'no')), ['unchanged']);
    assert.deepEqual(await findDamage(host), []);
    assert.deepEqual(
      operations.filter((op) => /^(fetch|stage)\.(?!area|directory|sweep)/.test(op)),
      [],
    );
  });

  it('does not change a tree that cannot be verified any more, and is reported', async () => {
    using one = await bench();
    const { host } = one;
    fs.rmSync(one.kept(), { recursive: true });
    setLedger(host.ledger, { accepted: {} });
    await one.test.publish('access', files(3), { serial: 3 });
    await host.client.refresh({ signal: new AbortController().signal });
    one.network.isUp = false;
    const end = await repair(host);
    assert.deepEqual(codes(end), ['failed', 'STATE_DAMAGED']);
    assert.equal(fs.readlinkSync(host.paths.current), 'generations/2');
  });

  it('together with an edited tree does not count as an intact tree', async () => {
    using one = await bench();
    fs.rmSync(one.kept(), { recursive: true });
    fs.appendFileSync(one.tree('policy.yaml'), '#');
    assert.deepEqual((await findDamage(one.host)).map(short), [
      'tree changed .',
      'record missing .',
      'manifest missing .',
    ]);
  });
});
