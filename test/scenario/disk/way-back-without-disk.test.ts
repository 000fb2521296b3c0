// A worker refuses while the disk refuses too, at each operation of the way back, by each error: the link is back, the worker
// uses the old policy, and nothing of the refusal is lost: not in memory, not by a restart, not when the disk is free again.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { activeGenerationNumber } from '../../../src/agent/generations/generations.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import { recordRestore, restoreProblems } from '../../../src/agent/state/restore-memory.js';
import type { FileOperation } from '../../../src/platform/disk/durable-fs.js';
import { cycleOn } from '../../kit/agent/cycle-on.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

interface Scene extends Disposable {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  /** What the disk does from now on; called with the index of each operation behind the swap. */
  fails: (operation: FileOperation, index: number) => string | undefined;
  readonly seen: string[];
}

const start = { cycle: 'c-ab', signal: new AbortController().signal } as const;

/** Release 5 is generation 1; the worker refuses generation 2, and the disk fails behind its swap. */
async function scene(): Promise<Scene> {
  const driver = scriptedDriver({
    a: (generation) => (generation === 2 ? refuses('field 21')() : confirms(generation)),
  });
  const seen: string[] = [];
  let isBehind = false;
  const before = (operation: FileOperation): void => {
    if (!isBehind) return;
    const errno = made.fails(operation, seen.length);
    seen.push(operation.op);
    if (errno !== undefined) throw Object.assign(new Error(errno), { code: errno });
  };
  const after = ({ op }: FileOperation): void => {
    isBehind ||= op === 'swap.link:flush-directory' && driver.notified.length > 0;
  };
  const test = testHost({ observer: { before, after }, groups: { app: { driver } } });
  const made: Scene = {
    ...{ test, driver, seen, fails: () => undefined },
    [Symbol.dispose]: () => test[Symbol.dispose](),
  };
  await test.publish('access', { 'policy.yaml': 'version: 5\n' }, { serial: 5 });
  await test.pull();
  // A start of another boot tries every refusal again: this boot has had one.
  await startHost(test.host, start);
  await test.publish('access', { 'policy.yaml': 'version: 6\n' }, { serial: 6 });
  return made;
}

/** What needs space; behind a full disk everything else goes on. */
function needsSpace({ op }: FileOperation): boolean {
  return /:write$|:create$|^reserve\.create|append|make|prepare/.test(op) && !op.startsWith('status');
}

async function restarted({ test, driver }: Scene): Promise<Host> {
  const host = test.reopen({ observer: {}, groups: { app: { driver } } });
  await startHost(host, start);
  return host;
}

const refusedIn = ({ refusals }: Host): unknown[] =>
  refusals.read().refusals.map(({ serial, code }) => [serial, code]);

/** The refused release stays out, of this process and of the next one. */
async function assertStaysOut(made: Scene): Promise<void> {
  const { test, driver } = made;
  assert.equal(activeGenerationNumber(test.host.paths), 1);
  assert.equal(driver.notified.at(-1), 'a 1');
  driver.notified.length = 0;
  const host = await restarted(made);
  await cycleOn(host);
  assert.equal(activeGenerationNumber(host.paths), 1);
  assert.equal(driver.notified.includes('a 2'), false, driver.notified.join());
  assert.deepEqual(
    driver.notified.filter((one) => one !== 'a 1'),
    [],
  );
  assert.deepEqual(refusedIn(host), [[6, 'WORKER_REFUSED']]);
}

async function operationsOfTheWayBack(): Promise<string[]> {
  using made = await scene();
  assert.equal((await made.test.pull()).outcome, 'rolled-back');
  return [...made.seen];
}

describe('a way back, at each operation that the disk refuses once', longCase, () => {
  for (const errno of ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS']) {
    it(`restores the old policy and keeps the refusal: ${errno}`, async () => {
      const operations = await operationsOfTheWayBack();
      assert.ok(operations.includes('swap.journal:write') && operations.includes('swap.link:rename'));
      const end = operations.lastIndexOf('commit.journal:flush-directory');
      for (const [index, op] of operations.slice(0, end + 1).entries()) {
        using made = await scene();
        made.fails = (_, at) => (at === index ? errno : undefined);
        const result = await made.test.pull();
        assert.equal(result.outcome, 'rolled-back', op);
        await assertStaysOut(made);
      }
    });
  }
});

describe('a way back on a disk that stays full', longCase, () => {
  for (const errno of ['ENOSPC', 'EDQUOT']) {
    it(`moves the link, keeps the refusal in memory and in the journal, and is critical: ${errno}`, async () => {
      using made = await scene();
      const { test, driver } = made;
      // A link takes an inode, which the reserve gives; blocks are taken by others as soon as they are free.
      made.fails = (operation) =>
        needsSpace(operation) && operation.op !== 'swap.link:create' ? errno : undefined;
      const result = await test.pull();
      assert.equal(result.outcome, 'rolled-back');
      assert.equal(activeGenerationNumber(test.host.paths), 1);
      const [problem] = restoreProblems(test.host, 1);
      const disk = errno === 'ENOSPC' ? 'DISK_FULL' : 'DISK_QUOTA';
      assert.deepEqual(
        [problem?.code, problem?.facts['disk'], problem?.facts['refused']],
        ['RESTORE_UNRECORDED', disk, 'WORKER_REFUSED'],
      );
      assert.match(problem?.message ?? '', /field 21/);
      driver.notified.length = 0;
      await test.pull();
      await test.pull();
      assert.deepEqual(driver.notified, []);
      (driver.notified as string[]).push('a 1');
      await assertStaysOut(made);
    });
  }

  it('is recorded as if the disk had never been full, once it has space', async () => {
    using plain = await scene();
    await plain.test.pull();
    using made = await scene();
    const { host } = made.test;
    made.fails = (operation) =>
      needsSpace(operation) && operation.op !== 'swap.link:create' ? 'ENOSPC' : undefined;
    await made.test.pull();
    assert.equal(recordRestore(host, { active: 1 }), 'full');
    made.fails = () => undefined;
    assert.equal(recordRestore(host, { active: 1 }), 'recorded');
    assert.deepEqual(restoreProblems(host, 1), []);
    assert.equal(fs.existsSync(host.paths.journal), false);
    const kept = (one: Host): unknown => {
      const { workers, committedCycle: _, scrub: _scrub, ...ledger } = one.ledger.read();
      const states = Object.entries(workers).map(([key, { state, wanted, confirmed }]) => [
        key,
        state,
        wanted,
        confirmed,
      ]);
      return [ledger, states, refusedIn(one)];
    };
    const disk = (one: Scene): Host => one.test.reopen({ observer: {} });
    assert.deepEqual(kept(disk(made)), kept(disk(plain)));
    assert.ok(fs.statSync(host.paths.reserve).size > 1_000_000);
  });

  it('notifies no worker of the refused policy again where the link itself cannot move, and moves it later', async () => {
    using made = await scene();
    const { test, driver } = made;
    made.fails = ({ op }) => (op.startsWith('status') ? undefined : 'EROFS');
    assert.equal((await test.pull()).outcome, 'failed');
    assert.equal(activeGenerationNumber(test.host.paths), 2);
    const [problem] = restoreProblems(test.host, 2);
    assert.deepEqual([problem?.code, problem?.facts['disk']], ['RESTORE_UNRECORDED', 'DISK_READ_ONLY']);
    assert.match(problem?.message ?? '', /generation 2 is still active/);
    driver.notified.length = 0;
    await test.pull();
    assert.deepEqual(driver.notified, []);
    made.fails = () => undefined;
    assert.equal(recordRestore(test.host, { active: 2 }), 'unmoved');
    await assertRestarted(made);
  });
});

/** A recovery goes back by the journal. */
async function assertRestarted(made: Scene): Promise<void> {
  const host = await restarted(made);
  assert.equal(activeGenerationNumber(host.paths), 1);
  assert.deepEqual(made.driver.notified, ['a 1']);
  assert.deepEqual(refusedIn(host), [[6, 'WORKER_REFUSED']]);
}
