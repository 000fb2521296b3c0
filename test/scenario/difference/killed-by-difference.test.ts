// A kill at each operation of an update by a delta: the next start has an intact policy, old or new, with its retained copy, and
// a cycle activates the new release. A crash combined with damage leads to no older release.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type DifferenceBench, differenceBench, filesOf } from '../../kit/delta/difference-bench.js';
import { flipBit } from '../../kit/disk/damage-file.js';
import { Killed, type OperationTrap, operationTrap } from '../../kit/disk/operation-trap.js';
import { findDamage } from '../../kit/host/repair-bench.js';

const signal = new AbortController().signal;
const few = (version: number): Record<string, string> => {
  const { 'list.rpz': list = '', 'policy.yaml': policy = '', ...files } = filesOf(version);
  return { 'list.rpz': list, 'policy.yaml': policy, 'rules/1': files['rules/1'] ?? '' };
};

async function offered(): Promise<DifferenceBench> {
  const bench = await differenceBench();
  await bench.publish(2, few(2));
  await bench.test.pull();
  await bench.publish(3, few(3));
  bench.fetched();
  return bench;
}

async function pullUnder(host: Host): Promise<string | undefined> {
  try {
    const { result } = await syncCycle(host, {
      cycle: 'c-ab',
      trigger: 'pull',
      force: 'no',
      signal,
      onEvent: () => undefined,
    });
    return result.outcome;
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
    return undefined;
  }
}

async function killedAt(
  bench: DifferenceBench,
  index: number,
  when: 'before' | 'after',
): Promise<OperationTrap> {
  const trap = operationTrap();
  trap.arm(index, when);
  await pullUnder(bench.test.reopen({ observer: trap }));
  // After a crash the start reads everything.
  fs.mkdirSync(join(bench.test.host.paths.staging, 'c-dead'), { recursive: true });
  return trap;
}

async function operationsOf(): Promise<string[]> {
  using bench = await offered();
  const trap = operationTrap();
  assert.equal(await pullUnder(bench.test.reopen({ observer: trap })), 'activated');
  assert.deepEqual(bench.fetched(), ['delta']);
  return trap.seen;
}

describe('an update by a delta that is killed', longCase, () => {
  it('leaves an intact policy at every operation, and the next cycle activates the new release', async () => {
    const operations = await operationsOf();
    for (const label of [
      'stage.copy',
      'stage.copy:time',
      'flush.record-base',
      'flush.record-delta',
      'flush.record-deltas',
    ])
      assert.ok(operations.includes(label), label);
    for (const [index, op] of operations.entries()) {
      using bench = await offered();
      const trap = await killedAt(bench, index, 'before');
      assert.ok(trap.isSprung(), `${op} (${index}) was not reached`);
      const host = bench.test.reopen();
      const moment = `${op} (${index})`;
      const { damage } = await startHost(host, { cycle: 'c-ac', signal });
      assert.equal(damage, undefined, moment);
      assert.match(bench.test.read('access/policy.yaml'), /^version: [23]\n$/, moment);
      assert.deepEqual(await findDamage(host), [], moment);
      await pullUnder(host);
      assert.equal(bench.test.read('access/policy.yaml'), 'version: 3\n', moment);
      assert.deepEqual(await findDamage(host), [], moment);
      assert.deepEqual(fs.readdirSync(host.paths.staging), [], moment);
    }
  });

  it('and damaged after its swap is repaired from its retained copy without a network', async () => {
    const operations = await operationsOf();
    const index = operations.indexOf('swap.link:rename');
    using bench = await offered();
    await killedAt(bench, index, 'after');
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 3\n');
    bench.test.repository.files.clear();
    flipBit(bench.tree('list.rpz'), 9);
    const host = bench.test.reopen();
    await startHost(host, { cycle: 'c-ac', signal });
    assert.deepEqual(await findDamage(host), []);
    assert.match(bench.test.read('access/policy.yaml'), /^version: [23]\n$/);
  });

  it('and damaged in the previous generation leads to no older release', async () => {
    const operations = await operationsOf();
    using bench = await offered();
    const before = bench.tree('list.rpz');
    await killedAt(bench, operations.indexOf('swap.link:rename'), 'before');
    bench.test.repository.files.clear();
    flipBit(before, 9);
    const host = bench.test.reopen();
    await startHost(host, { cycle: 'c-ac', signal });
    assert.deepEqual(await findDamage(host), []);
    assert.match(bench.test.read('access/policy.yaml'), /^version: [23]\n$/);
  });
});
