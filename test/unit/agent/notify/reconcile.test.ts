// Who is told apart from the cycle: who missed a tell, who appears, and nobody else.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { refreshMembers } from '../../../../src/agent/notify/membership.js';
import type { ReconcileResult } from '../../../../src/agent/notify/reconcile.js';
import { isPending, nextNotificationAtMs } from '../../../../src/agent/notify/worker-ledger.js';
import type { Answer } from '../../../../src/workers/contract/driver.js';
import { codes, entryOf, settle, world } from '../../../kit/agent/settled-world.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { testHost } from '../../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver, unreachable } from '../../../kit/workers/scripted-driver.js';

const queued = (): Answer => ({ kind: 'notified', text: 'queued' });

describe('a worker that could not be told', () => {
  it('is told again, it alone, until it confirms', async () => {
    const { test, driver } = await world({ a: confirms, b: unreachable });
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

  it('waits for its own turn, and not for that of others', async () => {
    const { test, driver } = await world({ a: confirms, b: unreachable });
    using _ = test;
    await settle(test.host);
    driver.notified.length = 0;
    const turn = (): Promise<ReconcileResult> => settle(test.host, { ignoreBackoff: false });
    assert.deepEqual(codes(await turn()), ['WORKER_UNREACHABLE'], 'said, though it is not notified yet');
    assert.deepEqual(driver.notified, []);
    test.clock.setWallTime(test.clock.nowMs() + 10_000);
    await turn();
    // The one that appears just now has its first turn at once.
    driver.workers.set('c', confirms);
    await turn();
    assert.deepEqual(driver.notified, ['b 1', 'c 1']);
    const entry = entryOf(test, 'app/b')!;
    assert.deepEqual([entry.tries, nextNotificationAtMs(entry)], [3, test.clock.nowMs() + 20_000]);
  });

  it('is due still after a restart of the agent, and told that once', async () => {
    const { test, driver } = await world({ a: confirms, b: unreachable });
    using _ = test;
    driver.workers.set('b', confirms);
    const restarted = test.reopen();
    await settle(restarted);
    await settle(restarted);
    assert.deepEqual(driver.notified, ['b 1']);
  });

  it('is due no more when it refuses: that is an answer, and said to who can act on it', async () => {
    const { test, driver } = await world({ a: unreachable, b: unreachable });
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

  it('is told under an id of its own each time', async () => {
    const { test, driver } = await world({ a: unreachable });
    using _ = test;
    const first = entryOf(test, 'app/a')?.notificationId;
    const second = (await settle(test.host)).results[0]?.notificationId;
    driver.workers.set('a', confirms);
    const third = (await settle(test.host)).results[0]?.notificationId;
    assert.equal(new Set([first, second, third]).size, 3);
    assert.equal(entryOf(test, 'app/a')?.notificationId, third);
  });
});

describe('a worker that appears', () => {
  it('is told what is active, though it was never seen', async () => {
    const { test, driver } = await world({});
    using _ = test;
    driver.workers.set('late', confirms);
    await settle(test.host);
    assert.deepEqual([driver.notified, entryOf(test, 'app/late')?.confirmed], [['late 1'], 1]);
  });

  it('as another process has confirmed nothing, and is told', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms });
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

  it('as another process soon after its proof is notified twice more, and has proved nothing where that repeats', async () => {
    const { test, driver } = await world({ a: confirms });
    using _ = test;
    let processes = 1;
    driver.workers.set('a', (generation) => {
      processes += 1;
      driver.processes.set('a', `process-${processes}`);
      return confirms(generation);
    });
    driver.processes.set('a', 'restarted by somebody');
    for (let round = 0; round < 12; round++) {
      await settle(test.host, { ignoreBackoff: false });
      await test.clock.advance(5000);
    }
    assert.deepEqual(driver.notified, ['a 1', 'a 1', 'a 1']);
    assert.equal(entryOf(test, 'app/a')?.state, 'notified');
  });

  it('as the second successor of a process that was killed soon after each notification proves the generation itself', async () => {
    const { test, driver } = await world({ a: confirms });
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

  it('as the successor of a process that ended soon after its proof proves the generation itself', async () => {
    const { test, driver } = await world({ a: confirms });
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

  /** Answers without a proof, and the notification made another process of it. */
  async function replacedOnce(): Promise<Awaited<ReturnType<typeof world>>> {
    const scene = await world({ a: queued });
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

  it('as a second process soon after its answer is notified: one notification makes one process', async () => {
    const { test, driver } = await replacedOnce();
    using _ = test;
    await settle(test.host);
    assert.deepEqual(driver.notified, ['a 2']);
    driver.processes.set('a', 'made by the second notification');
    await settle(test.host);
    assert.deepEqual(driver.notified, ['a 2'], 'each notification may make one');
  });

  it('as another process that started later than the notification is notified, also where no answer was a proof', async () => {
    const { test, driver } = await world({ a: queued });
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

  it('as another process is notified when the clock was put back since its answer', async () => {
    const { test, driver } = await world({ a: queued });
    using _ = test;
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    driver.notified.length = 0;
    test.clock.setWallTime(test.clock.nowMs() - 3_600_000);
    driver.processes.set('a', 'crashed and restarted');
    await settle(test.host);
    assert.deepEqual(driver.notified, ['a 2']);
  });

  it('as a second process soon after its answer is notified by a restarted agent as well', async () => {
    const { test, driver } = await replacedOnce();
    using _ = test;
    await settle(test.reopen());
    assert.deepEqual(driver.notified, ['a 2']);
  });

  it('on another connection of the same process is not a different process', async () => {
    const { test, driver } = await world({ a: unreachable });
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

  it('as another process right behind its answer is told where no tell makes one: that one has answered nothing', async () => {
    const { test, driver } = await world({ a: confirms });
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

  it('that is dead right behind its answer is no replacement of itself: it is pending', async () => {
    const { test, driver } = await world({ a: queued });
    using _ = test;
    driver.processes.set('a', 'first');
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    driver.processes.delete('a');
    driver.workers.set('a', unreachable);
    assert.deepEqual(codes(await settle(test.host)), ['WORKER_UNREACHABLE']);
    assert.equal(entryOf(test, 'app/a')?.state, 'unreachable');
  });

  it('as another process right behind its answer is asked by its probe, where there is one', async () => {
    using dir = tempDir();
    const shown = dir.join('shown');
    fs.writeFileSync(shown, '');
    const probe = { run: ['test', '-e', shown], timeoutMs: 60_000 } as const;
    const { test, driver } = await world({ a: confirms }, { probe });
    using _ = test;
    fs.rmSync(shown);
    driver.processes.set('a', 'restarted by somebody');
    driver.notified.length = 0;
    await settle(test.host);
    assert.deepEqual([driver.notified, entryOf(test, 'app/a')?.state], [['a 1'], 'unreachable']);
  });

  it('that was gone is told when it is back, unless it is the very process that confirmed', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms, c: confirms });
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
    assert.deepEqual(driver.notified, ['b 1', 'c 1'], 'nobody can say of c that it is the same');
    assert.equal(entryOf(test, 'app/a')?.goneAtMs, undefined);
  });

  it('and is gone for long is forgotten', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms });
    using _ = test;
    driver.workers.delete('b');
    await settle(test.host);
    test.clock.setWallTime(test.clock.nowMs() + 600_001);
    await settle(test.host);
    assert.deepEqual(Object.keys(test.host.ledger.read().workers), ['app/a']);
  });

  it('and is gone is remembered among the last of many that came and went', async () => {
    const { test, driver } = await world({});
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

  it('is told nothing while nothing is active', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    const { results, problems } = await settle(test.host);
    assert.deepEqual([results, problems], [[], []]);
    assert.deepEqual([driver.notified, driver.reads], [[], 0]);
  });
});

describe('a restart of the agent', () => {
  it('tells nobody who has confirmed, and writes nothing', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms });
    using _ = test;
    const restarted = test.reopen();
    await settle(restarted);
    const before = directoryState(test.host.paths.state);
    await settle(restarted);
    assert.deepEqual(directoryState(test.host.paths.state), before);
    assert.deepEqual(driver.notified, []);
  });
});

describe('a set that cannot be read', () => {
  it('makes its workers neither gone nor confirmed, and is said until it can', async () => {
    const { test, driver } = await world({ a: confirms });
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

  it('leaves an activation degraded, and its workers due', async () => {
    const { test, driver } = await world({ a: confirms });
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

describe('a cycle with nothing new', () => {
  it('reads the sets anew and tells who has appeared', async () => {
    const { test, driver } = await world({});
    using _ = test;
    driver.workers.set('late', confirms);
    const result = await test.pull();
    assert.deepEqual(
      [result.outcome, driver.notified, result.workers[0]?.state],
      ['unchanged', ['late 1'], 'confirmed'],
    );
    assert.match(result.workers[0]?.notificationId ?? '', new RegExp(`^${result.cycle}\\.1$`));
  });

  it('is degraded while a worker is due, or fewer are there than must be', async () => {
    const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 2 };
    const { test, driver } = await world({ a: confirms, b: unreachable }, { reset });
    using _ = test;
    const due = await test.pull();
    assert.deepEqual([due.exitCode, due.problems.map((one) => one.code)], [4, ['WORKER_UNREACHABLE']]);
    driver.workers.delete('b');
    const few = await test.pull();
    assert.deepEqual([few.exitCode, few.problems.map((one) => one.code)], [4, ['WORKERS_MISSING']]);
    assert.deepEqual([few.problems[0]?.facts['expected'], few.problems[0]?.facts['actual']], [2, 1]);
  });
});
