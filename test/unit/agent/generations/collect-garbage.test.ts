// Collection: the generations, trees and releases that it retains, those that it removes, and the state after a crash in it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { collectGarbage } from '../../../../src/agent/generations/collect-garbage.js';
import type { FindGenerationUsers } from '../../../../src/agent/generations/collectable.js';
import { listGenerations } from '../../../../src/agent/generations/generations.js';
import { recoverHost } from '../../../../src/agent/startup/recover-host.js';
import { writeJournal } from '../../../../src/agent/state/journal.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import {
  collect,
  generations,
  keepAll,
  later,
  orphanTree,
  serialsIn,
  staging,
  treeOf,
} from '../../../kit/host/many-generations.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { testHost } from '../../../kit/host/test-host.js';

describe('collection', () => {
  it('keeps the active and the previous generation with their trees and releases, and no others', async () => {
    using test = await generations(5);
    const { host } = test;
    assert.equal((await collect(later(host))).removed, 3);
    assert.deepEqual(listGenerations(host.paths), [4, 5]);
    assert.deepEqual(serialsIn(join(host.paths.bundles, 'access')), [4, 5]);
    assert.deepEqual(serialsIn(join(host.paths.archives, 'access')), [4, 5]);
    assert.deepEqual(fs.readdirSync(join(host.paths.staging, 'c-1')), []);
    assert.equal(test.read('access/policy.yaml'), 'version: 5\n');
  });

  it('keeps the newest as configured', async () => {
    using test = await generations(5);
    await collect(later(test.host, { generations: 3, graceMs: 0 }));
    assert.deepEqual(listGenerations(test.host.paths), [3, 4, 5]);
  });

  it('keeps the last known good generation, and those that a worker is to use or has confirmed last', async () => {
    using test = await generations(6, { groups: { app: {} } });
    const { ledger } = test.host;
    const worker = { wanted: 2, confirmed: 1, state: 'unreachable', text: '', atMs: 0 } as const;
    const gone = { ...worker, wanted: 4, confirmed: 4 };
    setLedger(ledger, { lastKnownGood: 3, workers: { 'app/a': worker, 'old-group/b': gone } });
    await collect(later(test.host));
    assert.deepEqual(
      listGenerations(test.host.paths),
      [1, 2, 3, 5, 6],
      'entries of a removed group retain nothing',
    );
  });

  it('keeps both generations of a swap while its journal exists', async () => {
    using test = await generations(6);
    const { host } = test;
    const journal = { writ: 1, cycle: 'c-2', from: 2, to: 6, direction: 'forward', attempts: 0 } as const;
    writeJournal(host.paths, host.durable, { ...journal, startedAtMs: 1, kind: 'update' });
    await collect(later(host));
    assert.deepEqual(listGenerations(host.paths), [2, 5, 6]);
    fs.writeFileSync(host.paths.journal, 'torn');
    await rejectsCode('STATE_DAMAGED', collect(later(host, { generations: 1, graceMs: 0 })));
    assert.deepEqual(
      listGenerations(host.paths),
      [2, 5, 6],
      'nothing is removed while the journal is unreadable',
    );
  });

  it('never removes a tree that a kept generation shares with an old one', async () => {
    using test = testHost({ config: keepAll, bundles: [{ name: 'dns-edge' }, { name: 'access' }] });
    await test.publish('dns-edge', { 'block.rpz': 'x' }, { serial: 1 });
    for (const serial of [1, 2, 3, 4]) {
      await test.publish('access', { 'policy.yaml': `${serial}` }, { serial });
      await test.pull();
    }
    assert.equal((await collect(later(test.host))).removed, 2);
    assert.deepEqual(listGenerations(test.host.paths), [3, 4]);
    assert.equal(test.read('dns-edge/block.rpz'), 'x');
    assert.deepEqual(serialsIn(join(test.host.paths.archives, 'dns-edge')), [1]);
  });

  it('renames into staging before it deletes, so that no reader sees a partial tree', async () => {
    const operations: { op: string; path: string }[] = [];
    using test = await generations(4, { observer: { before: (one) => void operations.push(one) } });
    operations.length = 0;
    await collect(later(test.host));
    const removed = operations.filter((one) => one.op === 'commit.collect-remove');
    assert.equal(removed.length, 6, 'two generations, two trees, two releases');
    for (const { path } of removed) assert.ok(path.startsWith(test.host.paths.staging), path);
    assert.ok(operations.some((one) => one.op === 'commit.collect:rename'));
  });

  it('continues past a retained generation with a lost tree, and keeps the release that repairs it', async () => {
    using test = await generations(5);
    const { paths } = test.host;
    fs.rmSync(join(paths.bundles, 'access', treeOf(test.host, 4)), { recursive: true });
    await collect(later(test.host));
    assert.deepEqual(listGenerations(paths), [4, 5]);
    assert.deepEqual(serialsIn(join(paths.archives, 'access')), [4, 5]);
  });

  const places: Readonly<Record<string, (path: string) => void>> = {
    'a file': (path) => fs.writeFileSync(path, 'obstacle'),
    'a link to nowhere': (path) => fs.symlinkSync('/nowhere/at/all', path),
    'a link to itself': (path) => fs.symlinkSync(path, path),
    'a FIFO': (path) => void execFileSync('mkfifo', [path]),
  };
  for (const [what, place] of Object.entries(places)) {
    it(`continues past an old generation replaced by ${what}, and removes that too`, async () => {
      using test = await generations(5);
      const { paths, ledger } = test.host;
      const harmed = join(paths.generations, '2');
      fs.rmSync(harmed, { recursive: true });
      place(harmed);
      const { '2': _left, ...retired } = ledger.read().retired ?? {};
      setLedger(ledger, { retired });
      await collect(later(test.host));
      assert.deepEqual(
        listGenerations(paths),
        [2, 4, 5],
        'the end of its use is unknown, so its grace period begins now',
      );
      await collect(later(later(test.host)));
      assert.deepEqual(listGenerations(paths), [4, 5]);
      assert.deepEqual(serialsIn(join(paths.bundles, 'access')), [4, 5]);
    });
  }

  it('keeps the recorded trees of a retained generation that it cannot read, or reads in part', async () => {
    using test = await generations(5);
    const { paths } = test.host;
    for (const harmed of [join(paths.generations, '4'), join(paths.generations, '5', 'access')]) {
      fs.rmSync(harmed, { recursive: true });
      fs.writeFileSync(harmed, 'obstacle');
    }
    await collect(later(test.host));
    assert.deepEqual(listGenerations(paths), [4, 5]);
    assert.deepEqual(serialsIn(join(paths.bundles, 'access')), [4, 5]);
    assert.deepEqual(serialsIn(join(paths.archives, 'access')), [4, 5]);
  });

  it('removes nothing if a generation is unreadable and the ledger has no record of its trees', async () => {
    using test = await generations(5);
    const { paths, ledger } = test.host;
    const harmed = join(paths.generations, '5');
    fs.rmSync(harmed, { recursive: true });
    fs.writeFileSync(harmed, 'obstacle');
    setLedger(ledger, { links: {} });
    await rejectsCode('STATE_DAMAGED', collect(later(test.host)));
    assert.deepEqual(serialsIn(join(paths.bundles, 'access')), [1, 2, 3, 4, 5]);
  });

  it('removes trees and releases that a crash left without a generation', async () => {
    using test = await generations(2);
    const { host } = test;
    const orphan = `9-${'a'.repeat(12)}`;
    fs.mkdirSync(join(host.paths.bundles, 'access', `${orphan}.9`));
    fs.mkdirSync(join(host.paths.archives, 'access', orphan));
    fs.mkdirSync(join(host.paths.bundles, 'access', 'lost+found'));
    await collect(later(host));
    const names = ['1', '2'].map((serial) => treeOf(host, Number(serial)));
    assert.deepEqual(
      fs.readdirSync(join(host.paths.bundles, 'access')).sort(),
      [...names, 'lost+found'].sort(),
    );
    assert.deepEqual(serialsIn(join(host.paths.archives, 'access')), [1, 2]);
  });

  it('flushes also after a single removal', async () => {
    const operations: string[] = [];
    using test = await generations(2, { observer: { before: ({ op }) => void operations.push(op) } });
    operations.length = 0;
    fs.mkdirSync(join(test.host.paths.bundles, 'access', orphanTree));
    await collect(later(test.host));
    assert.equal(operations.filter((op) => op === 'commit.collect-remove').length, 1);
    assert.equal(operations.at(-1), 'commit.collect-flush');
  });

  it('removes nothing, not even trees without a generation, if the search for generation users is incomplete', async () => {
    using test = await generations(5);
    const { bundles, generations: kept } = test.host.paths;
    fs.mkdirSync(join(bundles, 'access', orphanTree));
    const before = [kept, join(bundles, 'access')].map((path) => fs.readdirSync(path));
    const find: FindGenerationUsers = async () => ({
      holders: [],
      isComplete: false,
      processes: 1,
      unseen: 0,
    });
    const host = later(test.host);
    const { removed } = await collectGarbage(host, { staging: () => staging(host), find });
    const after = [kept, join(bundles, 'access')].map((path) => fs.readdirSync(path));
    assert.deepEqual([removed, after], [0, before]);
  });

  it('writes nothing if there is nothing to remove', async () => {
    const operations: string[] = [];
    using test = await generations(3, { observer: { before: ({ op }) => void operations.push(op) } });
    operations.length = 0;
    const find: FindGenerationUsers = () => assert.fail('no search without a removal');
    const now = later(test.host, { generations: 3, graceMs: 0 });
    assert.equal((await collectGarbage(now, { staging: () => assert.fail(), find })).removed, 0);
    assert.deepEqual(operations, []);
  });

  it('continues past a generation that cannot be removed, keeps its trees, and throws at the end', async () => {
    using test = await generations(5, {
      observer: {
        before: ({ op, path }) => {
          if (op !== 'commit.collect:rename' || !path.endsWith('old-generation-2')) return;
          throw Object.assign(new Error('bad block'), { code: 'EIO' });
        },
      },
    });
    await rejectsCode('DISK_FAILED', collect(later(test.host)));
    assert.deepEqual(listGenerations(test.host.paths), [2, 4, 5]);
    assert.deepEqual(serialsIn(join(test.host.paths.bundles, 'access')), [2, 4, 5]);
    assert.deepEqual(serialsIn(join(test.host.paths.archives, 'access')), [2, 4, 5]);
  });

  it('ends at its time limit, and is due again', async () => {
    using test = await generations(6);
    let now = 0;
    const host = {
      ...later(test.host),
      clock: { ...later(test.host).clock, monotonicMs: () => (now += 900) },
    };
    const first = await collect(host);
    assert.deepEqual([first.removed, first.hasMore], [2, true]);
    const second = await collect(later(test.host));
    assert.deepEqual([second.removed, second.hasMore], [2, false]);
    assert.deepEqual(serialsIn(join(test.host.paths.bundles, 'access')), [5, 6]);
  });

  it('does not undo an activation when it fails', async () => {
    const noGrace = { keep: { generations: 1, graceMs: Number.NEGATIVE_INFINITY } };
    let fails = false;
    const observer = {
      before: ({ op }: { op: string }): void => {
        if (fails && op === 'commit.collect:rename') throw Object.assign(new Error('bad'), { code: 'EIO' });
      },
    };
    using test = await generations(2, { config: noGrace, observer });
    fails = true;
    await test.publish('access', { 'policy.yaml': 'version: 3\n' }, { serial: 3 });
    const result = await test.pull();
    assert.deepEqual([result.outcome, test.read('access/policy.yaml')], ['activated', 'version: 3\n']);
    assert.deepEqual(listGenerations(test.host.paths), [1, 2, 3]);
  });
});

describe('a killed collection', longCase, () => {
  /** The error of a simulated kill. Every later operation throws it too. */
  class Killed extends Error {}

  it('is completed by a start and the next collection, whichever operation did not run', async () => {
    const labels: string[] = [];
    let killAt = Number.POSITIVE_INFINITY;
    const before = ({ op }: { op: string }): void => {
      labels.push(op);
      if (labels.length > killAt) throw new Killed(op);
    };
    using test = await generations(3, { observer: { before } });
    const { host } = test;
    const whole = join(test.directory, 'whole');
    fs.cpSync(host.paths.state, whole, { recursive: true, verbatimSymlinks: true });
    labels.length = 0;
    await collect(later(host));
    const count = labels.length;
    assert.ok(count >= 9, labels.join(' '));
    for (let index = 0; index < count; index += 1) {
      fs.rmSync(host.paths.state, { recursive: true });
      fs.cpSync(whole, host.paths.state, { recursive: true, verbatimSymlinks: true });
      killAt = index;
      labels.length = 0;
      await assert.rejects(collect(later(host)), Killed);
      killAt = Number.POSITIVE_INFINITY;
      const again = test.reopen();
      await recoverHost(again, { cycle: 'c-9', signal: new AbortController().signal });
      assert.equal(test.read('access/policy.yaml'), 'version: 3\n', labels.at(-1));
      await collect(later(again));
      assert.deepEqual(listGenerations(host.paths), [2, 3], labels.at(-1));
      for (const place of [host.paths.bundles, host.paths.archives]) {
        assert.deepEqual(serialsIn(join(place, 'access')), [2, 3], `${index}`);
      }
    }
  });
});
