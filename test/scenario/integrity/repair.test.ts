// Every kind of damage to a policy on disk: a scan finds it, a repair makes a new generation of the same releases, workers are
// notified, and no byte of the damaged tree is changed.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { directoryState } from '../../kit/assert/directory-state.js';
import { longCase } from '../../kit/assert/long-case.js';
import { flipBit, putFifo } from '../../kit/disk/damage-file.js';
import {
  assertWhole,
  type Bench,
  bench,
  codes,
  type Damage,
  files,
  findDamage,
  repair,
  scrubOnce,
  short,
} from '../../kit/host/repair-bench.js';
import { testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver, unreachable } from '../../kit/workers/scripted-driver.js';

/** Damage to the public tree or its links, which is repaired by a new generation. */
const publicDamage: Readonly<Record<string, Damage>> = {
  'other content of the same size': {
    does: ({ tree }) => fs.writeFileSync(tree('views/a.rpz'), 'b\n'),
    finds: ['tree changed views/a.rpz'],
  },
  'one bit of content': {
    does: ({ tree }) => flipBit(tree('policy.yaml'), 3),
    finds: ['tree changed policy.yaml'],
  },
  'a longer file': {
    does: ({ tree }) => fs.appendFileSync(tree('policy.yaml'), '# mine\n'),
    finds: ['tree changed policy.yaml'],
  },
  'a file that is gone': {
    does: ({ tree }) => fs.rmSync(tree('views/a.rpz')),
    finds: ['tree missing views/a.rpz'],
  },
  'a directory that is gone': {
    does: ({ tree }) => fs.rmSync(tree('views'), { recursive: true }),
    finds: ['tree missing views/a.rpz'],
  },
  'a file too many': {
    does: ({ tree }) => fs.writeFileSync(tree('views/b.rpz'), 'b\n'),
    finds: ['tree extra views/b.rpz'],
  },
  'a mode': {
    does: ({ tree }) => fs.chmodSync(tree('policy.yaml'), 0o666),
    finds: ['tree mode policy.yaml'],
  },
  ...(process.getuid?.() === 0
    ? {
        'an owner': {
          does: ({ tree }: Bench) => fs.chownSync(tree('policy.yaml'), 4242, 0),
          finds: ['tree owner policy.yaml'],
        },
      }
    : {}),
  'the mode of the tree': { does: ({ tree }) => fs.chmodSync(tree(), 0o777), finds: ['tree mode .'] },
  'a link in place of a file': {
    does: ({ tree }) => {
      fs.rmSync(tree('policy.yaml'));
      fs.symlinkSync('/etc/hostname', tree('policy.yaml'));
    },
    finds: ['tree type policy.yaml'],
  },
  'a FIFO in place of a file': {
    does: ({ tree }) => putFifo(tree('policy.yaml')),
    finds: ['tree type policy.yaml'],
  },
  'a second name of a file': {
    does: ({ tree, test }) => fs.linkSync(tree('policy.yaml'), join(test.directory, 'door')),
    finds: ['tree type policy.yaml'],
  },
  'a tree that is gone': {
    does: ({ tree }) => fs.rmSync(tree(), { recursive: true }),
    finds: ['tree missing .'],
  },
  'every tree of the bundle': {
    does: ({ host }) => fs.rmSync(join(host.paths.bundles, 'access'), { recursive: true }),
    finds: ['tree missing .'],
  },
  "a generation's link that is gone": {
    does: ({ host }) => fs.rmSync(join(host.paths.current, 'access')),
    finds: ['generation missing access'],
  },
  "a generation's link to another tree of ours": {
    does: ({ host }) => {
      const [old] = fs.readdirSync(join(host.paths.bundles, 'access')).filter((name) => name.endsWith('.1'));
      fs.rmSync(join(host.paths.current, 'access'));
      fs.symlinkSync(`../../bundles/access/${old}`, join(host.paths.current, 'access'));
    },
    finds: ['generation changed access'],
  },
  'a file among the links': {
    does: ({ host }) => fs.writeFileSync(join(host.paths.current, 'notes'), ''),
    finds: ['generation extra notes'],
  },
  'a directory in place of the link': {
    does: ({ host }) => {
      fs.rmSync(join(host.paths.current, 'access'));
      fs.mkdirSync(join(host.paths.current, 'access'));
    },
    finds: ['generation type access'],
  },
  'the directory of the generation': {
    does: ({ host }) => fs.rmSync(join(host.paths.generations, '2'), { recursive: true }),
    finds: ['generation missing .'],
  },
  'the mode of the generation': {
    does: ({ host }) => fs.chmodSync(join(host.paths.generations, '2'), 0o700),
    finds: ['generation mode .'],
  },
  'a `current` that is gone': {
    does: ({ host }) => fs.rmSync(host.paths.current),
    finds: ['current missing .'],
  },
  'a `current` turned to another generation of ours': {
    does: ({ host }) => {
      fs.rmSync(host.paths.current);
      fs.symlinkSync('generations/1', host.paths.current);
    },
    finds: ['current changed .'],
  },
  'all of the public side': {
    does: ({ host }) => {
      fs.rmSync(host.paths.policy, { recursive: true });
      fs.mkdirSync(host.paths.policy, 0o755);
    },
    finds: ['current missing .', 'generation missing .', 'tree missing .'],
  },
};

describe('a scan of an intact policy', longCase, () => {
  it('finds nothing, and a repair writes nothing', async () => {
    using one = await bench();
    const before = directoryState(one.test.directory);
    assert.deepEqual(await findDamage(one.host), []);
    assert.equal(await repair(one.host), undefined);
    assert.deepEqual(directoryState(one.test.directory), before);
  });

  it('without reading the files keeps the findings of one that read them', async () => {
    using one = await bench();
    fs.writeFileSync(one.tree('views/a.rpz'), 'b\n');
    await scrubOnce(one.host, { contents: 'digests', repair: 'no' });
    assert.deepEqual((await scrubOnce(one.host, { contents: 'sizes', repair: 'no' })).damage, []);
    const { outcome, damage } = one.host.ledger.read().scrub ?? {};
    assert.deepEqual([outcome, damage?.map(short)], ['damaged', ['tree changed views/a.rpz']]);
  });

  it('finds nothing where no policy was ever active', async () => {
    using test = testHost();
    assert.deepEqual(await findDamage(test.host), []);
    assert.equal(await repair(test.host), undefined);
  });
});

describe('a repair from the retained archive', longCase, () => {
  for (const [name, { does, finds }] of Object.entries(publicDamage)) {
    it(`mends ${name}, without the network`, async () => {
      using one = await bench();
      const { host, driver } = one;
      does(one);
      one.network.isUp = false;
      assert.deepEqual((await findDamage(host)).map(short), finds);
      const damaged = fs.existsSync(one.tree()) ? directoryState(one.tree()) : undefined;
      const end = await repair(host, 'no');
      assert.deepEqual(codes(end), ['activated']);
      assert.deepEqual(
        end?.result.bundles.map((b) => [b.fromSerial, b.toSerial]),
        [[2, 2]],
      );
      assert.equal(fs.readlinkSync(host.paths.current), 'generations/3');
      assertWhole(one, 2);
      assert.deepEqual(await findDamage(host), []);
      // Only a tree that the link did not lead to gets a later time.
      if (damaged !== undefined && finds[0] !== 'current changed .')
        assert.deepEqual(directoryState(one.tree()), damaged, 'the old tree is as it was');
      assert.deepEqual(driver.notified, ['a 3']);
      const ledger = host.ledger.read();
      assert.deepEqual([ledger.previous, ledger.lastKnownGood], [1, 3]);
      assert.equal((await one.test.pull()).outcome, 'failed');
      one.network.isUp = true;
      assert.equal((await one.test.pull()).outcome, 'unchanged');
    });
  }

  it('gives the new tree a later time, and no other than the damaged one a new tree', async () => {
    using one = await bench({ bundles: [{ name: 'access' }, { name: 'zones' }] }, []);
    const { test, host } = one;
    await test.publish('access', files(1), { serial: 1 });
    await test.publish('zones', { z: '1' }, { serial: 7 });
    await test.pull();
    const path = (name: string): string => fs.realpathSync(join(host.paths.current, name));
    const before = { access: path('access/policy.yaml'), zones: path('zones') };
    const { mtimeMs } = fs.statSync(before.access);
    fs.writeFileSync(before.access, 'version: 9\n');
    await repair(host, 'no');
    assert.ok(fs.statSync(path('access/policy.yaml')).mtimeMs > mtimeMs);
    assert.notEqual(path('access/policy.yaml'), before.access);
    assert.equal(path('zones'), before.zones);
  });

  it('gives the trees of a repaired link a later time than they had', async () => {
    using one = await bench();
    const { current } = one.host.paths;
    const { mtimeMs } = fs.statSync(one.tree('policy.yaml'));
    fs.rmSync(current);
    fs.symlinkSync('generations/1', current);
    assert.deepEqual(codes(await repair(one.host, 'no')), ['activated']);
    assert.ok(fs.statSync(join(current, 'access/policy.yaml')).mtimeMs > mtimeMs);
  });

  it('notifies a pending worker, also where its bundles were intact', async () => {
    const due = scriptedDriver({ z: confirms });
    const groups = { due: { driver: due, config: { uses: ['zones'] } } };
    using one = await bench({ bundles: [{ name: 'access' }, { name: 'zones' }], groups }, []);
    const { test, host } = one;
    await test.publish('access', files(1), { serial: 1 });
    await test.publish('zones', { z: '1' }, { serial: 7 });
    due.workers.set('z', unreachable);
    assert.equal((await test.pull()).outcome, 'degraded');
    due.workers.set('z', confirms);
    due.notified.length = 0;
    fs.writeFileSync(join(host.paths.current, 'access/policy.yaml'), 'x');
    assert.deepEqual(codes(await repair(host, 'no')), ['activated']);
    assert.deepEqual(due.notified, ['z 2']);
  });

  it('notifies with any answer of a probe, and probes for the existing stamp', async () => {
    const driver = scriptedDriver({ a: confirms });
    const probe = { run: ['test', '{serial}', '=', '2'] as [string, ...string[]], timeoutMs: 60_000 };
    using one = await bench({ groups: { app: { driver, config: { probe } } } }, []);
    await one.test.publish('access', files(2), { serial: 2 });
    await one.test.pull();
    fs.writeFileSync(join(one.host.paths.current, 'access/policy.yaml'), 'x');
    assert.deepEqual(codes(await repair(one.host, 'no')), ['activated']);
    assert.deepEqual(driver.notified, ['a 1', 'a 2']);
  });

  it('repairs several bundles in one swap', async () => {
    using one = await bench({ bundles: [{ name: 'access' }, { name: 'zones' }] }, []);
    const { test, host, driver } = one;
    await test.publish('access', files(1), { serial: 1 });
    await test.publish('zones', { z: '1' }, { serial: 7 });
    await test.pull();
    driver.notified.length = 0;
    fs.writeFileSync(join(host.paths.current, 'access/policy.yaml'), 'x');
    fs.rmSync(join(host.paths.current, 'zones/z'));
    assert.deepEqual(codes(await repair(host, 'no')), ['activated']);
    assert.deepEqual([fs.readlinkSync(host.paths.current), driver.notified], ['generations/2', ['a 2']]);
    assert.deepEqual([test.read('zones/z'), await findDamage(host)], ['1', []]);
  });
});

describe('a repair that a worker refuses', longCase, () => {
  it('moves the link back, records no refusal of the release, and can be tried again', async () => {
    using one = await bench();
    const { host, driver } = one;
    fs.writeFileSync(one.tree('policy.yaml'), 'VERSION: 2\n');
    driver.workers.set('a', (generation) => (generation === 3 ? refuses('no')() : confirms(generation)));
    const end = await repair(host);
    assert.deepEqual(codes(end), ['rolled-back', 'WORKER_REFUSED']);
    assert.equal(fs.readlinkSync(host.paths.current), 'generations/2');
    assert.deepEqual(host.refusals.read().refusals, []);
    assert.deepEqual((await findDamage(host)).map(short), ['tree changed policy.yaml']);
    driver.workers.set('a', confirms);
    assert.deepEqual(codes(await repair(host)), ['activated']);
    assertWhole(one, 2);
  });
});
