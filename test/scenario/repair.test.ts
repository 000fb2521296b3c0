// Every kind of damage to a policy on disk: a look finds it, a repair makes it whole as a new generation of the very
// same releases, workers are told, and no byte of the damaged tree is touched.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { examineActive } from '../../src/agent/examine-active.js';
import type { Host } from '../../src/agent/host.js';
import { unboundedPace } from '../../src/agent/pace.js';
import { type RepairEnd, repairActive } from '../../src/agent/repair.js';
import type { DamageFound } from '../../src/core/scrub.js';
import { directoryState } from '../support/directory-state.js';
import { confirms, refuses, type ScriptedDriver, scriptedDriver } from '../support/scripted-driver.js';
import { type TestHost, type TestHostOptions, testHost } from '../support/test-host.js';

const signal = new AbortController().signal;

interface Bench extends Disposable {
  readonly test: TestHost;
  readonly host: Host;
  readonly driver: ScriptedDriver;
  /** The network of this host. */
  readonly network: { isUp: boolean };
  /** A path below the active tree. */
  tree(path?: string): string;
  /** A path below the kept release of the active one. */
  kept(name?: string): string;
}

const files = (version: number) => ({
  'policy.yaml': `version: ${version}\n`,
  'views/a.rpz': 'a\n',
  'bin/tool!x': '#!/bin/sh\n',
});

/** Release 1, then 2: generation 2 is active, generation 1 is whole behind it. */
async function bench(options: TestHostOptions = {}, releases: readonly number[] = [1, 2]): Promise<Bench> {
  const driver = scriptedDriver({ a: confirms });
  const network = { isUp: true };
  const test = testHost({
    groups: { app: { driver } },
    source: (source) => ({
      ...source,
      fetch: (path, given) => (network.isUp ? source.fetch(path, given) : Promise.reject(down())),
      stream: (path, given) => {
        if (!network.isUp) throw down();
        return source.stream(path, given);
      },
    }),
    ...options,
  });
  for (const serial of releases) {
    await test.publish('access', files(serial), { serial });
    assert.equal((await test.pull()).outcome, 'activated');
  }
  driver.told.length = 0;
  const { host } = test;
  const treePath = releases.length === 0 ? '' : fs.realpathSync(join(host.paths.current, 'access'));
  const release = /([^/]+)\.\d+$/.exec(treePath)?.[1] ?? '';
  return {
    test,
    host,
    driver,
    network,
    tree: (path = '') => join(treePath, path),
    kept: (name = '') => join(host.paths.archives, 'access', release, name),
    [Symbol.dispose]: () => test[Symbol.dispose](),
  };
}

function down(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
}

async function look(host: Host): Promise<readonly DamageFound[]> {
  const found = await examineActive(host, { contents: 'digests', pace: unboundedPace(signal) });
  return found?.damage ?? [];
}

function repair(host: Host, download: 'yes' | 'no' = 'yes'): Promise<RepairEnd | undefined> {
  return repairActive(host, { cycle: 'c-ab', signal, download });
}

const short = ({ part, kind, path }: DamageFound): string => `${part} ${kind} ${path}`;
const codes = (end: RepairEnd | undefined): (string | undefined)[] => [
  end?.result.outcome,
  ...(end?.result.problems ?? []).map((one) => one.code),
];

interface Damage {
  readonly does: (bench: Bench) => void;
  readonly finds: readonly string[];
}

/** In the public tree, or in what names it: mended by a new generation. */
const publicDamage: Readonly<Record<string, Damage>> = {
  'other content of the same size': {
    does: ({ tree }) => fs.writeFileSync(tree('views/a.rpz'), 'b\n'),
    finds: ['tree changed views/a.rpz'],
  },
  'one bit of content': {
    does: ({ tree }) => {
      const bytes = fs.readFileSync(tree('policy.yaml'));
      bytes[3] = (bytes[3] ?? 0) ^ 1;
      fs.writeFileSync(tree('policy.yaml'), bytes);
    },
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
    does: ({ tree }) => {
      fs.rmSync(tree('policy.yaml'));
      execFileSync('mkfifo', [tree('policy.yaml')]);
    },
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

/** In what is kept to make the tree anew: mended without a swap. */
const keptDamage: Readonly<Record<string, Damage>> = {
  'a bit of the kept archive': {
    does: ({ kept }) => {
      const bytes = fs.readFileSync(kept('archive.tar.br'));
      bytes[9] = (bytes[9] ?? 0) ^ 1;
      fs.writeFileSync(kept('archive.tar.br'), bytes);
    },
    finds: ['archive changed .'],
  },
  'half of the kept archive': {
    does: ({ kept }) => fs.truncateSync(kept('archive.tar.br'), 20),
    finds: ['archive changed .'],
  },
  'no kept archive': { does: ({ kept }) => fs.rmSync(kept('archive.tar.br')), finds: ['archive missing .'] },
  'a FIFO for the kept archive': {
    does: ({ kept }) => {
      fs.rmSync(kept('archive.tar.br'));
      execFileSync('mkfifo', [kept('archive.tar.br')]);
    },
    finds: ['archive type .'],
  },
  'another manifest': {
    does: ({ kept }) => fs.appendFileSync(kept('manifest.json'), ' '),
    finds: ['manifest changed .'],
  },
  'no manifest': { does: ({ kept }) => fs.rmSync(kept('manifest.json')), finds: ['manifest missing .'] },
  'a FIFO for the manifest': {
    does: ({ kept }) => {
      fs.rmSync(kept('manifest.json'));
      execFileSync('mkfifo', [kept('manifest.json')]);
    },
    finds: ['manifest changed .'],
  },
  'a FIFO for the record': {
    does: ({ kept }) => {
      fs.rmSync(kept('record.json'));
      execFileSync('mkfifo', [kept('record.json')]);
    },
    finds: ['record changed .'],
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
    finds: ['record missing .'],
  },
};

function assertWhole({ host, test }: Bench, version: number): void {
  assert.equal(test.read('access/policy.yaml'), `version: ${version}\n`);
  assert.equal(test.read('access/views/a.rpz'), 'a\n');
  assert.deepEqual(fs.readdirSync(join(host.paths.current, 'access')).sort(), [
    'bin',
    'policy.yaml',
    'views',
  ]);
  assert.deepEqual(fs.readdirSync(host.paths.staging), []);
  assert.equal(fs.existsSync(host.paths.journal), false);
}

describe('a look at a whole policy', () => {
  it('finds nothing, and a repair does and writes nothing', async () => {
    using one = await bench();
    const before = directoryState(one.test.directory);
    assert.deepEqual(await look(one.host), []);
    assert.equal(await repair(one.host), undefined);
    assert.deepEqual(directoryState(one.test.directory), before);
  });

  it('finds nothing where nothing was ever active', async () => {
    using test = testHost();
    assert.deepEqual(await look(test.host), []);
    assert.equal(await repair(test.host), undefined);
  });
});

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
      assert.deepEqual(await look(host), []);
    });
  }

  it('makes no empty generation of a policy of which nothing is left', async () => {
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

describe('a repair from the kept archive', () => {
  for (const [name, { does, finds }] of Object.entries(publicDamage)) {
    it(`mends ${name}, without the network`, async () => {
      using one = await bench();
      const { host, driver } = one;
      does(one);
      one.network.isUp = false;
      assert.deepEqual((await look(host)).map(short), finds);
      const damaged = fs.existsSync(one.tree()) ? directoryState(one.tree()) : undefined;
      const end = await repair(host, 'no');
      assert.deepEqual(codes(end), ['activated']);
      assert.deepEqual(
        end?.result.bundles.map((b) => [b.fromSerial, b.toSerial]),
        [[2, 2]],
      );
      assert.equal(fs.readlinkSync(host.paths.current), 'generations/3');
      assertWhole(one, 2);
      assert.deepEqual(await look(host), []);
      // Only what the link did not lead to comes back with a later time.
      if (damaged !== undefined && finds[0] !== 'current changed .')
        assert.deepEqual(directoryState(one.tree()), damaged, 'the old tree is as it was');
      assert.deepEqual(driver.told, ['a 3']);
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

  it('mends several bundles in one swap', async () => {
    using one = await bench({ bundles: [{ name: 'access' }, { name: 'zones' }] }, []);
    const { test, host, driver } = one;
    await test.publish('access', files(1), { serial: 1 });
    await test.publish('zones', { z: '1' }, { serial: 7 });
    await test.pull();
    driver.told.length = 0;
    fs.writeFileSync(join(host.paths.current, 'access/policy.yaml'), 'x');
    fs.rmSync(join(host.paths.current, 'zones/z'));
    assert.deepEqual(codes(await repair(host, 'no')), ['activated']);
    assert.deepEqual([fs.readlinkSync(host.paths.current), driver.told], ['generations/2', ['a 2']]);
    assert.deepEqual([test.read('zones/z'), await look(host)], ['1', []]);
  });
});

describe('a forced pull', () => {
  it('mends what is damaged by the same move: whoever read it is told, and what is whole keeps its tree', async () => {
    using one = await bench({ bundles: [{ name: 'access' }, { name: 'zones' }] }, []);
    const { test, host, driver } = one;
    for (const serial of [1, 2]) {
      await test.publish('access', files(serial), { serial });
      await test.publish('zones', { z: String(serial) }, { serial });
      await test.pull();
    }
    driver.told.length = 0;
    const zones = fs.realpathSync(join(host.paths.current, 'zones'));
    fs.writeFileSync(join(host.paths.current, 'access/policy.yaml'), 'x');
    const result = await test.pull({ force: 'yes' });
    assert.deepEqual([result.outcome, result.generation, driver.told], ['activated', 3, ['a 3']]);
    assert.equal(fs.realpathSync(join(host.paths.current, 'zones')), zones);
    assert.equal(host.ledger.read().previous, 1, 'no rollback goes to the damaged one');
    assert.deepEqual(await look(host), []);
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'unchanged');
  });

  it('writes anew what is kept, without a swap', async () => {
    using one = await bench();
    fs.rmSync(one.kept('archive.tar.br'));
    assert.equal((await one.test.pull({ force: 'yes' })).outcome, 'unchanged');
    assert.deepEqual([await look(one.host), one.driver.told], [[], []]);
  });
});

describe('damage to what is kept', () => {
  for (const [name, { does, finds }] of Object.entries(keptDamage)) {
    it(`is mended without a swap: ${name}`, async () => {
      using one = await bench();
      const { host, driver } = one;
      does(one);
      assert.deepEqual((await look(host)).map(short), finds);
      const end = await repair(host);
      assert.deepEqual([codes(end), end?.result.changed], [['unchanged'], false]);
      assert.deepEqual([fs.readlinkSync(host.paths.current), driver.told], ['generations/2', []]);
      assert.deepEqual(await look(host), []);
      assertWhole(one, 2);
    });

    it(`together with the tree is mended by a download of the very same release: ${name}`, async () => {
      using one = await bench();
      does(one);
      fs.writeFileSync(one.tree('policy.yaml'), 'VERSION: 2\n');
      assert.deepEqual(codes(await repair(one.host)), ['activated']);
      assert.equal(fs.readlinkSync(one.host.paths.current), 'generations/3');
      assertWhole(one, 2);
      assert.deepEqual(await look(one.host), []);
    });
  }
});

describe('a repair that cannot have the release', () => {
  const spoil = (one: Bench): void => {
    fs.writeFileSync(one.tree('policy.yaml'), 'VERSION: 2\n');
    fs.rmSync(one.kept('archive.tar.br'));
  };

  it('goes back to the previous generation, says so, and the next poll brings the release back', async () => {
    using one = await bench();
    const { host, driver, test } = one;
    spoil(one);
    one.network.isUp = false;
    const end = await repair(host);
    assert.deepEqual(codes(end), ['degraded', 'REPAIRED_BY_PREVIOUS']);
    assert.deepEqual([fs.readlinkSync(host.paths.current), driver.told], ['generations/1', ['a 1']]);
    assertWhole(one, 1);
    assert.deepEqual([host.ledger.read().previous, host.ledger.read().holds], [undefined, []]);
    one.network.isUp = true;
    assert.equal((await test.pull()).outcome, 'activated');
    assertWhole(one, 2);
    assert.deepEqual(await look(host), []);
  });

  it('does not even ask the network at a start', async () => {
    using one = await bench();
    spoil(one);
    one.test.repository.takeRequests();
    assert.deepEqual(codes(await repair(one.host, 'no')), ['degraded', 'REPAIRED_BY_PREVIOUS']);
    assert.deepEqual(one.test.repository.takeRequests(), []);
  });

  it('leaves the damaged policy, and says so, when nothing older is whole', async () => {
    using one = await bench({}, [2]);
    const { host, driver } = one;
    spoil(one);
    one.network.isUp = false;
    const end = await repair(host);
    assert.deepEqual(codes(end), ['failed', 'REPAIR_FAILED']);
    assert.deepEqual([fs.readlinkSync(host.paths.current), driver.told], ['generations/1', []]);
    assert.equal(one.test.read('access/policy.yaml'), 'VERSION: 2\n');
    one.network.isUp = true;
    assert.deepEqual(codes(await repair(host)), ['activated']);
    assertWhole(one, 2);
  });

  it('passes over an older generation that shares the damaged tree', async () => {
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

  it('never replaces a `current` that Writ did not make', async () => {
    using one = await bench();
    const { host } = one;
    fs.rmSync(host.paths.current);
    fs.symlinkSync('/etc', host.paths.current);
    assert.deepEqual((await look(host)).map(short), ['current type .']);
    assert.deepEqual(codes(await repair(host)), ['failed', 'REPAIR_FAILED']);
    assert.equal(fs.readlinkSync(host.paths.current), '/etc');
  });
});

describe('a repair that a worker refuses', () => {
  it('puts the link back, remembers nothing against the release, and can be tried again', async () => {
    using one = await bench();
    const { host, driver } = one;
    fs.writeFileSync(one.tree('policy.yaml'), 'VERSION: 2\n');
    driver.workers.set('a', (generation) => (generation === 3 ? refuses('no')() : confirms(generation)));
    const end = await repair(host);
    assert.deepEqual(codes(end), ['rolled-back', 'WORKER_REFUSED']);
    assert.equal(fs.readlinkSync(host.paths.current), 'generations/2');
    assert.deepEqual(host.refusals.read().refusals, []);
    assert.deepEqual((await look(host)).map(short), ['tree changed policy.yaml']);
    driver.workers.set('a', confirms);
    assert.deepEqual(codes(await repair(host)), ['activated']);
    assertWhole(one, 2);
  });
});
