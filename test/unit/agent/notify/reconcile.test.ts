// Workers that a reconcile notifies between cycles: those that missed a notification, and new ones.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { refreshMembers } from '../../../../src/agent/notify/membership.js';
import type { ReconcileResult } from '../../../../src/agent/notify/reconcile.js';
import { isPending, nextNotificationAtMs } from '../../../../src/agent/notify/worker-ledger.js';
import type { Answer } from '../../../../src/workers/contract/driver.js';
import { codes, entryOf, settle, settledWorld } from '../../../kit/agent/settled-world.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { testHost } from '../../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver, unreachable } from '../../../kit/workers/scripted-driver.js';

const queued = (): Answer => ({ kind: 'notified', text: 'queued' });

describe('a worker that could not be notified', () => {
  it('is notified again, without other workers, until it confirms', async () => {
    const { test, driver } = await settledWorld({ a: confirms, b: unreachable });
    using _ = test;
    assert.deepEqual(codes(await settle(test.host)), ['WORKER_UNREACHABLE']);
    driver.workers.set('b', confirms);
    assert.deepEqual(codes(await settle(test.host)), []);
    assert.deepEqual(driver.notified, ['b 1', 'b 1']);
    assert.deepEqual(
      [entryOf(test, 'app/a')?.state, entryOf(test, 'app/b')?.state],
      ['confirmed', 'confirmed'],
    );
    assert.deepEqual(fs.readdirSync(test.host.paths.staging), []);
  });

  it('has a backoff of its own', async () => {
    const { test, driver } = await settledWorld({ a: confirms, b: unreachable });
    using _ = test;
    await settle(test.host);
    driver.notified.length = 0;
    const turn = (): Promise<ReconcileResult> => settle(test.host, { ignoreBackoff: false });
    assert.deepEqual(
      codes(await turn()),
      ['WORKER_UNREACHABLE'],
      'reported, although it is not notified yet',
    );
    assert.deepEqual(driver.notified, []);
    test.clock.setWallTime(test.clock.nowMs() + 10_000);
    await turn();
    // A new worker is notified at once, without a backoff.
    driver.workers.set('c', confirms);
    await turn();
    assert.deepEqual(driver.notified, ['b 1', 'c 1']);
    const entry = entryOf(test, 'app/b')!;
    assert.deepEqual([entry.tries, nextNotificationAtMs(entry)], [3, test.clock.nowMs() + 20_000]);
  });

  it('is still pending after a restart of the agent, and is notified once', async () => {
    const { test, driver } = await settledWorld({ a: confirms, b: unreachable });
    using _ = test;
    driver.workers.set('b', confirms);
    const restarted = test.reopen();
    await settle(restarted);
    await settle(restarted);
    assert.deepEqual(driver.notified, ['b 1']);
  });

  it('is no longer pending after a refusal, which is passed to the caller', async () => {
    const { test, driver } = await settledWorld({ a: unreachable, b: unreachable });
    using _ = test;
    driver.workers.set('a', confirms).set('b', refuses('no view eu'));
    const refusals: string[] = [];
    const onRefused = async (error: { code: string }): Promise<void> => void refusals.push(error.code);
    const result = await settle(test.host, { onRefused });
    assert.deepEqual([codes(result), refusals], [['WORKER_REFUSED'], ['WORKER_REFUSED']]);
    assert.deepEqual(
      [entryOf(test, 'app/a')?.state, entryOf(test, 'app/b')?.state],
      ['confirmed', 'refused'],
    );
    assert.ok(!Object.values(test.host.ledger.read().workers).some(isPending));
  });

  it('is notified with a new id each time', async () => {
    const { test, driver } = await settledWorld({ a: unreachable });
    using _ = test;
    const first = entryOf(test, 'app/a')?.notificationId;
    const second = (await settle(test.host)).results[0]?.notificationId;
    driver.workers.set('a', confirms);
    const third = (await settle(test.host)).results[0]?.notificationId;
    assert.equal(new Set([first, second, third]).size, 3);
    assert.equal(entryOf(test, 'app/a')?.notificationId, third);
  });
});

describe('a new member', () => {
  it('is notified of the active generation, although it is not in the ledger', async () => {
    const { test, driver } = await settledWorld({});
    using _ = test;
    driver.workers.set('late', confirms);
    await settle(test.host);
    assert.deepEqual([driver.notified, entryOf(test, 'app/late')?.confirmed], [['late 1'], 1]);
  });

  it('with a different process has confirmed nothing, and is notified', async () => {
    const { test, driver } = await settledWorld({ a: confirms, b: confirms });
    using _ = test;
    driver.processes.set('a', 'second-a');
    driver.workers.set('a', unreachable);
    await settle(test.host);
    assert.deepEqual([driver.notified, entryOf(test, 'app/a')?.state], [['a 1'], 'unreachable']);
    driver.workers.set('a', confirms);
    await settle(test.host);
    await settle(test.host);
    assert.deepEqual(driver.notified, ['a 1', 'a 1']);
  });

  it('with a different process soon after its confirmation is notified twice more, and is not confirmed if that repeats', async () => {
    const { test, driver } = await settledWorld({ a: confirms });
    using _ = test;
    let processes = 1;
    driver.workers.set('a', (generation) => {
      processes += 1;
      driver.processes.set('a', `process-${processes}`);
      return confirms(generation);
    });
    driver.processes.set('a', 'restarted');
    for (let round = 0; round < 12; round++) {
      await settle(test.host, { ignoreBackoff: false });
      await test.clock.advance(5000);
    }
    assert.deepEqual(driver.notified, ['a 1', 'a 1', 'a 1']);
    assert.equal(entryOf(test, 'app/a')?.state, 'notified');
  });

  it('after two processes that were killed soon after a notification confirms the generation itself', async () => {
    const { test, driver } = await settledWorld({ a: confirms });
    using _ = test;
    driver.processes.set('a', 'first');
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    driver.notified.length = 0;
    for (const process of ['second', 'third']) {
      await test.clock.advance(4000);
      driver.processes.set('a', process);
      await settle(test.host, { ignoreBackoff: false });
    }
    const { state: stateBefore } = entryOf(test, 'app/a') ?? {};
    assert.deepEqual([driver.notified, stateBefore], [['a 2'], 'pending']);
    await test.clock.advance(15_000);
    await settle(test.host, { ignoreBackoff: false });
    const { state, process } = entryOf(test, 'app/a') ?? {};
    assert.deepEqual([driver.notified, state], [['a 2', 'a 2'], 'confirmed']);
    assert.match(process ?? '', /third$/);
  });

  it('after a process that ended soon after its confirmation confirms the generation itself', async () => {
    const { test, driver } = await settledWorld({ a: confirms });
    using _ = test;
    driver.processes.set('a', 'first');
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    await test.clock.advance(5000);
    driver.processes.set('a', 'second');
    driver.notified.length = 0;
    await settle(test.host);
    const { state, atMs, process } = entryOf(test, 'app/a') ?? {};
    assert.deepEqual([driver.notified, state, atMs], [['a 2'], 'confirmed', test.clock.nowMs()]);
    assert.match(process ?? '', /second$/);
  });

  /** A worker that answers without a confirmation, and a notification that replaced its process. */
  async function replacedOnce(): Promise<Awaited<ReturnType<typeof settledWorld>>> {
    const scene = await settledWorld({ a: queued });
    const { test, driver } = scene;
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    driver.notified.length = 0;
    driver.processes.set('a', 'made by the notification');
    await settle(test.host);
    assert.deepEqual(driver.notified, []);
    driver.processes.set('a', 'crashed and restarted');
    return scene;
  }

  it('with a second process soon after its answer is notified, because one notification starts one process', async () => {
    const { test, driver } = await replacedOnce();
    using _ = test;
    await settle(test.host);
    assert.deepEqual(driver.notified, ['a 2']);
    driver.processes.set('a', 'made by the second notification');
    await settle(test.host);
    assert.deepEqual(driver.notified, ['a 2'], 'each notification may make one');
  });

  it('with a process that started later than the notification is notified, also if its answers never confirm', async () => {
    const { test, driver } = await settledWorld({ a: queued });
    using _ = test;
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    driver.notified.length = 0;
    const startedNow = (pid: number): string => `${pid}@${Math.round(test.clock.bootMs() / 10)}`;
    await test.clock.advance(1000);
    driver.processes.set('a', startedNow(4711));
    await settle(test.host);
    assert.deepEqual(driver.notified, [], 'the notification may have made it');
    await test.publish('access', { 'policy.yaml': '3' }, { serial: 3 });
    await test.pull();
    driver.notified.length = 0;
    await test.clock.advance(5000);
    driver.processes.set('a', startedNow(4712));
    await settle(test.host);
    assert.deepEqual(driver.notified, ['a 3'], 'a person restarted it');
  });

  it('with a different process is notified after the clock was set back since its answer', async () => {
    const { test, driver } = await settledWorld({ a: queued });
    using _ = test;
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    driver.notified.length = 0;
    test.clock.setWallTime(test.clock.nowMs() - 3_600_000);
    driver.processes.set('a', 'crashed and restarted');
    await settle(test.host);
    assert.deepEqual(driver.notified, ['a 2']);
  });

  it('with a second process soon after its answer is notified by a restarted agent too', async () => {
    const { test, driver } = await replacedOnce();
    using _ = test;
    await settle(test.reopen());
    assert.deepEqual(driver.notified, ['a 2']);
  });

  it('does not count as a different process on another connection of the same process', async () => {
    const { test, driver } = await settledWorld({ a: unreachable });
    using _ = test;
    const textFor = async (process: string): Promise<string | undefined> => {
      driver.processes.set('a', process);
      await refreshMembers(test.host, { active: 1, groups: test.host.groups, livenessCheck: 'departed' });
      return entryOf(test, 'app/a')?.text;
    };
    await textFor('4711@88/1000.1');
    assert.equal(await textFor('4711@88/2000.1'), 'has connected again, and has not answered since');
    assert.equal(await textFor('4712@99/2000.2'), 'is a different process than before');
  });

  it('with a different process right after its answer is notified if its driver keeps processes', async () => {
    const { test, driver } = await settledWorld({ a: confirms });
    using _ = test;
    Object.assign(driver, { keepsProcess: 'yes' });
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    driver.processes.set('a', 'second-a');
    driver.workers.set('a', unreachable);
    driver.notified.length = 0;
    assert.deepEqual(codes(await settle(test.host)), ['WORKER_UNREACHABLE']);
    assert.deepEqual([driver.notified, entryOf(test, 'app/a')?.state], [['a 2'], 'unreachable']);
  });

  it('that is dead right after its answer does not count as replaced, and is pending', async () => {
    const { test, driver } = await settledWorld({ a: queued });
    using _ = test;
    driver.processes.set('a', 'first');
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    driver.processes.delete('a');
    driver.workers.set('a', unreachable);
    assert.deepEqual(codes(await settle(test.host)), ['WORKER_UNREACHABLE']);
    assert.equal(entryOf(test, 'app/a')?.state, 'unreachable');
  });

  it(
    'with a different process right after its answer is probed, if its group has a probe',
    longCase,
    async () => {
      using dir = tempDir();
      const shown = dir.join('shown');
      fs.writeFileSync(shown, '');
      const probe = { run: ['test', '-e', shown], timeoutMs: 60_000 } as const;
      const { test, driver } = await settledWorld({ a: confirms }, { probe });
      using _ = test;
      fs.rmSync(shown);
      driver.processes.set('a', 'restarted');
      driver.notified.length = 0;
      await settle(test.host);
      assert.deepEqual([driver.notified, entryOf(test, 'app/a')?.state], [['a 1'], 'unreachable']);
    },
  );

  it('that had departed is notified when it is back, unless the same process confirmed', async () => {
    const { test, driver } = await settledWorld({ a: confirms, b: confirms, c: confirms });
    using _ = test;
    driver.processes.delete('c');
    await settle(test.host);
    driver.notified.length = 0;
    for (const name of ['a', 'b', 'c']) driver.workers.delete(name);
    await settle(test.host);
    assert.equal(entryOf(test, 'app/a')?.goneAtMs, test.clock.nowMs());
    for (const name of ['a', 'b', 'c']) driver.workers.set(name, confirms);
    driver.processes.set('b', 'second-b');
    await settle(test.host);
    assert.deepEqual(driver.notified, ['b 1', 'c 1'], 'c may be a different process');
    assert.equal(entryOf(test, 'app/a')?.goneAtMs, undefined);
  });

  it('that departed long ago is removed from the ledger', async () => {
    const { test, driver } = await settledWorld({ a: confirms, b: confirms });
    using _ = test;
    driver.workers.delete('b');
    await settle(test.host);
    test.clock.setWallTime(test.clock.nowMs() + 600_001);
    await settle(test.host);
    assert.deepEqual(Object.keys(test.host.ledger.read().workers), ['app/a']);
  });

  it('that departed stays in the ledger among the last of many such members', longCase, async () => {
    const { test, driver } = await settledWorld({});
    using _ = test;
    for (const round of [1, 2, 3]) {
      driver.workers.clear();
      for (let at = 0; at < 150; at++) driver.workers.set(`${round}-${at}`, confirms);
      test.clock.setWallTime(test.clock.nowMs() + 1000);
      await settle(test.host);
    }
    driver.workers.clear();
    test.clock.setWallTime(test.clock.nowMs() + 1000);
    await settle(test.host);
    const names = Object.keys(test.host.ledger.read().workers);
    assert.equal(names.length, 256);
    assert.equal(names.filter((one) => one.startsWith('app/3-')).length, 150, 'the last ones first');
  });

  it('is not notified while no generation is active', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    const { results, problems } = await settle(test.host);
    assert.deepEqual([results, problems], [[], []]);
    assert.deepEqual([driver.notified, driver.reads], [[], 0]);
  });
});

describe('a restart of the agent', () => {
  it('notifies no worker that confirmed, and writes nothing', async () => {
    const { test, driver } = await settledWorld({ a: confirms, b: confirms });
    using _ = test;
    const restarted = test.reopen();
    await settle(restarted);
    const before = directoryState(test.host.paths.state);
    await settle(restarted);
    assert.deepEqual(directoryState(test.host.paths.state), before);
    assert.deepEqual(driver.notified, []);
  });
});

describe('a group with members that cannot be listed', () => {
  it('has neither departed nor confirmed workers, and is reported until it can be listed', async () => {
    const { test, driver } = await settledWorld({ a: confirms });
    using _ = test;
    driver.unread = '/run/app cannot be listed: EACCES';
    const result = await settle(test.host);
    assert.deepEqual([codes(result), result.problems[0]?.facts['group']], [['WORKER_UNREACHABLE'], 'app']);
    assert.deepEqual([entryOf(test, 'app/a')?.goneAtMs, entryOf(test, 'app/a')?.confirmed], [undefined, 1]);
    const since = test.host.ledger.read().unreadSets?.['app']?.sinceMs;
    test.clock.setWallTime(test.clock.nowMs() + 60_000);
    await settle(test.host);
    assert.equal(test.host.ledger.read().unreadSets?.['app']?.sinceMs, since);
    driver.unread = undefined;
    assert.deepEqual(codes(await settle(test.host)), []);
    assert.equal(test.host.ledger.read().unreadSets, undefined);
    assert.deepEqual(driver.notified, []);
  });

  it('leaves an activation degraded, and its workers pending', async () => {
    const { test, driver } = await settledWorld({ a: confirms });
    using _ = test;
    driver.unread = '/run/app cannot be listed: EACCES';
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.generation, result.confirmed], [4, 2, false]);
    assert.equal(entryOf(test, 'app/a')?.state, 'pending');
    driver.unread = undefined;
    await settle(test.host);
    assert.deepEqual([driver.notified, entryOf(test, 'app/a')?.confirmed], [['a 2'], 2]);
  });
});

describe('a cycle without a new release', () => {
  it('refreshes the members and notifies a new one', async () => {
    const { test, driver } = await settledWorld({});
    using _ = test;
    driver.workers.set('late', confirms);
    const result = await test.pull();
    assert.deepEqual(
      [result.outcome, driver.notified, result.workers[0]?.state],
      ['unchanged', ['late 1'], 'confirmed'],
    );
    assert.match(result.workers[0]?.notificationId ?? '', new RegExp(`^${result.cycle}\\.1$`));
  });

  it('is degraded while a worker is pending, or the group has fewer members than its minimum', async () => {
    const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 2 };
    const { test, driver } = await settledWorld({ a: confirms, b: unreachable }, { reset });
    using _ = test;
    const due = await test.pull();
    assert.deepEqual([due.exitCode, due.problems.map((one) => one.code)], [4, ['WORKER_UNREACHABLE']]);
    driver.workers.delete('b');
    const few = await test.pull();
    assert.deepEqual([few.exitCode, few.problems.map((one) => one.code)], [4, ['WORKERS_MISSING']]);
    assert.deepEqual([few.problems[0]?.facts['expected'], few.problems[0]?.facts['actual']], [2, 1]);
  });
});
