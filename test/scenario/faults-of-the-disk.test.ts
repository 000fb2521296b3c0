// A disk that gives out at every single write of a cycle, once or for good: the cycle ends with an answer, the policy
// is one of the two whole ones, and when the disk has been mended the release comes and every worker uses it.
import assert from 'node:assert/strict';
import { readlinkSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Host } from '../../src/agent/host.js';
import { recoverHost } from '../../src/agent/recover-host.js';
import { syncCycle } from '../../src/agent/sync-cycle.js';
import { showResult } from '../../src/cli/show-result.js';
import type { OperationObserver } from '../../src/platform/durable-fs.js';
import { publishNext } from '../support/fault-table.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../support/scripted-driver.js';
import { type TestHost, testHost } from '../support/test-host.js';

interface Disk extends OperationObserver {
  /** Operations so far, in order. */
  readonly seen: string[];
  /** The n-th operation fails, and with `for good` every one behind it. */
  failAt(index: number, how: 'once' | 'for good'): void;
  mend(): void;
}

function failingDisk(): Disk {
  const seen: string[] = [];
  let fails = (_index: number): boolean => false;
  return {
    seen,
    failAt: (index, how) => {
      fails = (at) => (how === 'once' ? at === index : at >= index);
    },
    mend: () => {
      fails = () => false;
    },
    before: ({ op }) => {
      seen.push(op);
      if (!fails(seen.length - 1)) return;
      throw Object.assign(new Error(`ENOSPC: no space left on device, ${op}`), { code: 'ENOSPC' });
    },
  };
}

interface Bench extends Disposable {
  readonly test: TestHost;
  readonly disk: Disk;
  readonly driver: ScriptedDriver;
}

/** Release 5 is active as generation 1, release 6 is published. */
async function bench(): Promise<Bench> {
  const disk = failingDisk();
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ observer: disk, groups: { app: { driver } } });
  await publishNext(test, 5);
  assert.equal((await test.pull()).outcome, 'activated');
  await publishNext(test, 6);
  disk.seen.splice(0);
  return { test, disk, driver, [Symbol.dispose]: () => test[Symbol.dispose]() };
}

async function operationsOfACycle(): Promise<readonly string[]> {
  using one = await bench();
  assert.equal((await one.test.pull()).outcome, 'activated');
  return [...one.disk.seen];
}

const signal = new AbortController().signal;
const recovered = async (host: Host): Promise<Host> => {
  await recoverHost(host, { cycle: 'c-recovery', signal });
  return host;
};

/** The next pull, by the same agent or by one that has been started again. */
async function pullOn(host: Host): Promise<void> {
  const { result } = await syncCycle(host, { cycle: 'c-next', trigger: 'pull', force: 'no', signal });
  assert.equal(result.exitCode, 0, JSON.stringify(result.problems));
}

async function survives(
  index: number,
  how: 'once' | 'for good',
  then: 'goes on' | 'restarts',
): Promise<void> {
  using one = await bench();
  const { test, disk, driver } = one;
  disk.failAt(index, how);
  const result = await test.pull();
  const op = disk.seen[index];
  const version = Number(/version: (\d)/.exec(test.read('access/policy.yaml'))?.[1]);
  if (result.changed && result.exitCode !== 0)
    assert.match(showResult(result).lines.join('\n'), /Generation 2 is active/, op);
  // The last write only sweeps what nobody needs any more.
  if (op !== 'stage.sweep')
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [1, 'DISK_FULL'], op);
  assert.equal(result.changed, version === 6, op);
  assert.deepEqual(test.host.refusals.read().refusals, [], op);

  disk.mend();
  await pullOn(then === 'restarts' ? await recovered(test.reopen()) : test.host);
  assert.equal(test.read('access/policy.yaml'), 'version: 6\n', op);
  const generation = Number(/\d+$/.exec(driver.told.at(-1) ?? '')?.[0]);
  assert.equal(`generations/${generation}`, currentOf(test), `${op}: told ${driver.told.join()}`);
}

function currentOf(test: TestHost): string {
  return readlinkSync(test.host.paths.current);
}

describe('a disk that is full', () => {
  for (const [how, then] of [
    ['once', 'goes on'],
    ['for good', 'restarts'],
  ] as const) {
    it(`${how}, at any write, leaves a whole policy, and the release comes when the agent ${then}`, async () => {
      const operations = await operationsOfACycle();
      assert.ok(operations.length > 20, operations.join(' '));
      for (const index of operations.keys()) await survives(index, how, then);
    });
  }
});
