// A collection retains generations in their grace period, those that a process uses, and trees that two generations share.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { rollBack } from '../../../../src/agent/cycle/rollback.js';
import { collectGarbage } from '../../../../src/agent/generations/collect-garbage.js';
import type { FindGenerationUsers } from '../../../../src/agent/generations/collectable.js';
import { listGenerations } from '../../../../src/agent/generations/generations.js';
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

describe('the grace period of a generation', () => {
  const grace = { generations: 1, graceMs: 600_000 };

  it('begins when it stops being active, not at its creation', async () => {
    using test = await generations(2);
    await test.clock.advance(86_400_000);
    await test.publish('access', { 'policy.yaml': 'version: 3\n' }, { serial: 3 });
    await test.pull();
    await test.publish('access', { 'policy.yaml': 'version: 4\n' }, { serial: 4 });
    await test.pull();
    const early = await collect(later(test.host, grace, 599_000));
    assert.deepEqual(listGenerations(test.host.paths), [2, 3, 4], '1 was left a day ago, 2 just now');
    assert.ok(early.nextDueMs !== undefined && early.nextDueMs <= test.clock.nowMs() + 600_000);
    await collect(later(test.host, grace, 600_001));
    assert.deepEqual(listGenerations(test.host.paths), [3, 4]);
  });

  it('begins again when a rollback leaves it, and ends when it is active again', async () => {
    using test = await generations(3);
    await test.clock.advance(86_400_000);
    await rollBack(test.host, {
      generation: 1,
      by: 'anna',
      reason: '',
      signal: new AbortController().signal,
    });
    assert.deepEqual(Object.keys(test.host.ledger.read().retired ?? {}), ['2', '3']);
    assert.equal(test.host.ledger.read().retired?.['3'], test.clock.nowMs());
    await collect(later(test.host, grace, 1000));
    assert.deepEqual(listGenerations(test.host.paths), [1, 3]);
  });

  it('begins at its creation if it never was active', async () => {
    using test = await generations(2);
    const { host } = test;
    fs.cpSync(join(host.paths.generations, '1'), join(host.paths.generations, '9'), { recursive: true });
    const { mtimeMs: madeAtMs } = fs.statSync(join(host.paths.generations, '9'));
    const now = { ...later(host, grace), clock: { ...host.clock, nowMs: () => madeAtMs + 599_000 } };
    setLedger(host.ledger, { nextGeneration: 10 });
    assert.equal((await collect(now)).removed, 0);
    assert.ok(listGenerations(host.paths).includes(9));
  });

  it('begins again if a wrong clock had set a time years ahead', async () => {
    using test = await generations(4);
    const { host } = test;
    const aheadMs = host.clock.nowMs() + 10 * 365 * 86_400_000;
    setLedger(host.ledger, { retired: { 1: aheadMs, 2: aheadMs } });
    assert.equal((await collect(later(host, grace, 0))).removed, 0);
    assert.equal((await collect(later(host, grace, 599_000))).removed, 0);
    assert.equal((await collect(later(host, grace, 600_001))).removed, 2);
  });

  it('is removed from the ledger with the generation', async () => {
    using test = await generations(4, { config: { keep: { generations: 1, graceMs: 0 } } });
    assert.deepEqual(listGenerations(test.host.paths), [3, 4]);
    await test.publish('access', { 'policy.yaml': 'version: 5\n' }, { serial: 5 });
    await test.pull();
    assert.deepEqual(Object.keys(test.host.ledger.read().retired ?? {}), ['3', '4']);
  });
});

describe('a generation user', () => {
  const cwd = { what: 'cwd', path: '/x', pid: 4711, command: 'named' } as const;

  it('retains a generation with its trees and releases, and is reported', async () => {
    using test = await generations(5);
    const { paths } = test.host;
    const host = later(test.host);
    const end = await collect(host, { directory: { kind: 'generation', generation: 2 }, ...cwd });
    const sinceMs = test.clock.nowMs();
    assert.deepEqual([end.removed, end.held], [2, [{ generation: 2, ...cwd, sinceMs }]]);
    assert.deepEqual(listGenerations(paths), [2, 4, 5]);
    for (const place of [paths.bundles, paths.archives]) {
      assert.deepEqual(serialsIn(join(place, 'access')), [2, 4, 5]);
    }
    const gone = await collect(host);
    assert.deepEqual([gone.removed, gone.held, listGenerations(paths)], [1, [], [4, 5]]);
  });

  it('retains the generation of its tree, and none if the tree is active', async () => {
    using test = await generations(5);
    const tree = (serial: number) =>
      ({ kind: 'tree', bundle: 'access', tree: treeOf(test.host, serial) }) as const;
    const end = await collect(
      later(test.host),
      { directory: tree(2), ...cwd },
      { directory: tree(5), ...cwd },
    );
    assert.deepEqual(
      end.held.map(({ generation, bundle }) => [generation, bundle]),
      [[2, 'access']],
    );
    assert.deepEqual(listGenerations(test.host.paths), [2, 4, 5]);
  });

  it('retains a tree without a generation', async () => {
    using test = await generations(2);
    fs.mkdirSync(join(test.host.paths.bundles, 'access', orphanTree));
    const held = { kind: 'tree', bundle: 'access', tree: orphanTree } as const;
    const end = await collect(later(test.host), { directory: held, ...cwd });
    assert.deepEqual(
      end.held.map(({ generation, bundle }) => [generation, bundle]),
      [[undefined, 'access']],
    );
    assert.ok(fs.existsSync(join(test.host.paths.bundles, 'access', orphanTree)));
  });

  it('retains everything if the search was incomplete', async () => {
    using test = await generations(5);
    const find: FindGenerationUsers = async () => ({
      holders: [],
      isComplete: false,
      processes: 9,
      unseen: 0,
    });
    const end = await collectGarbage(later(test.host), { staging: () => staging(test.host), find });
    assert.deepEqual([end.removed, listGenerations(test.host.paths)], [0, [1, 2, 3, 4, 5]]);
  });
});

describe('two generations', () => {
  it('share no file of a changed bundle: each backup is a complete, independent copy', async () => {
    using test = testHost({ config: keepAll });
    const inodes = (generation: number): bigint[] => {
      const tree = join(test.host.paths.generations, String(generation), 'access');
      return ['a', 'sub/b'].map((name) => fs.statSync(join(tree, name), { bigint: true }).ino);
    };
    for (const serial of [1, 2, 3]) {
      await test.publish('access', { a: 'the same', 'sub/b': 'the same', c: `${serial}` }, { serial });
      await test.pull();
    }
    const all = [1, 2, 3].flatMap(inodes);
    assert.equal(new Set(all).size, all.length);
    const links = [1, 2, 3].flatMap((one) =>
      ['a', 'sub/b'].map(
        (name) => fs.statSync(join(test.host.paths.generations, `${one}`, 'access', name)).nlink,
      ),
    );
    assert.deepEqual(new Set(links), new Set([1]));
  });
});
