import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { collectGarbage } from '../../src/agent/collect-garbage.js';
import { listGenerations } from '../../src/agent/generations.js';
import type { Host } from '../../src/agent/host.js';
import { throwsCode } from '../support/assert-code.js';
import { type TestHost, type TestHostOptions, testHost } from '../support/test-host.js';

const keepAll = { keep: { generations: 1000, graceMs: 0 } };

async function generations(count: number, options: TestHostOptions = {}): Promise<TestHost> {
  const test = testHost({ config: keepAll, ...options });
  for (let serial = 1; serial <= count; serial += 1) {
    await test.publish('access', { 'policy.yaml': `version: ${serial}\n` }, { serial });
    assert.equal((await test.pull()).exitCode, 0);
  }
  return test;
}

/** The host an hour from now, when nothing is young any more, with fewer generations to keep. */
function later(host: Host, keep = { generations: 1, graceMs: 600_000 }): Host {
  return {
    ...host,
    config: { ...host.config, keep },
    clock: { ...host.clock, nowMs: () => Date.now() + 3_600_000 },
  };
}

function staging(test: TestHost): string {
  const path = join(test.host.paths.staging, 'c-1');
  fs.mkdirSync(path);
  return path;
}

const serialsIn = (path: string): number[] =>
  fs
    .readdirSync(path)
    .map((name) => Number(name.split('-')[0]))
    .sort((a, b) => a - b);

describe('collection', () => {
  it('keeps the active and the previous generation with their trees and releases, and no others', async () => {
    using test = await generations(5);
    const { host } = test;
    assert.equal(collectGarbage(later(host), staging(test)), 3);
    assert.deepEqual(listGenerations(host.paths), [4, 5]);
    assert.deepEqual(serialsIn(join(host.paths.bundles, 'access')), [4, 5]);
    assert.deepEqual(serialsIn(join(host.paths.archives, 'access')), [4, 5]);
    assert.deepEqual(fs.readdirSync(join(host.paths.staging, 'c-1')), []);
    assert.equal(test.read('access/policy.yaml'), 'version: 5\n');
  });

  it('keeps the newest as configured', async () => {
    using test = await generations(5);
    collectGarbage(later(test.host, { generations: 3, graceMs: 0 }), staging(test));
    assert.deepEqual(listGenerations(test.host.paths), [3, 4, 5]);
  });

  it('keeps the last known good one, and what a worker is to use or has last proved', async () => {
    using test = await generations(6);
    const { ledger } = test.host;
    const worker = { wanted: 2, confirmed: 1, state: 'unreachable', text: '', atMs: 0 } as const;
    ledger.write({ ...ledger.read(), lastKnownGood: 3, workers: { 'app/a': worker } });
    collectGarbage(later(test.host), staging(test));
    assert.deepEqual(listGenerations(test.host.paths), [1, 2, 3, 5, 6]);
  });

  it('keeps what is young: a reader in another container may have just opened it', async () => {
    using test = await generations(4);
    const now = { ...later(test.host), clock: { ...test.clock, nowMs: () => Date.now() } };
    assert.equal(collectGarbage(now, staging(test)), 0);
    assert.deepEqual(listGenerations(test.host.paths), [1, 2, 3, 4]);
  });

  it('never removes a tree that a kept generation shares with an old one', async () => {
    using test = testHost({ config: keepAll, bundles: [{ name: 'dns-edge' }, { name: 'access' }] });
    await test.publish('dns-edge', { 'block.rpz': 'x' }, { serial: 1 });
    for (const serial of [1, 2, 3, 4]) {
      await test.publish('access', { 'policy.yaml': `${serial}` }, { serial });
      await test.pull();
    }
    assert.equal(collectGarbage(later(test.host), staging(test)), 2);
    assert.deepEqual(listGenerations(test.host.paths), [3, 4]);
    assert.equal(test.read('dns-edge/block.rpz'), 'x');
    assert.deepEqual(serialsIn(join(test.host.paths.archives, 'dns-edge')), [1]);
  });

  it('begins each deletion by a rename into staging, so that nobody meets half a tree', async () => {
    const operations: { op: string; path: string }[] = [];
    using test = await generations(4, { observer: { before: (one) => void operations.push(one) } });
    operations.length = 0;
    collectGarbage(later(test.host), staging(test));
    const removed = operations.filter((one) => one.op === 'commit.collect-remove');
    assert.equal(removed.length, 6, 'two generations, two trees, two releases');
    for (const { path } of removed) assert.ok(path.startsWith(test.host.paths.staging), path);
    assert.ok(operations.some((one) => one.op === 'commit.collect:rename'));
  });

  it('removes no tree while a kept generation cannot be read', async () => {
    using test = await generations(5);
    const { paths } = test.host;
    const [tree] = fs.readdirSync(join(paths.bundles, 'access')).filter((name) => name.startsWith('4-'));
    fs.rmSync(join(paths.bundles, 'access', tree!), { recursive: true });
    throwsCode('STATE_DAMAGED', () => collectGarbage(later(test.host), staging(test)));
    assert.deepEqual(serialsIn(join(paths.bundles, 'access')), [1, 2, 3, 5]);
  });

  it('that fails does not take an activation back', async () => {
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
