import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createReconciler,
  identityGapMs,
  type ReconcileRound,
  runReconcileLoop,
} from '../../../../src/agent/daemon/reconcile-loop.js';
import { readHistory } from '../../../../src/agent/job/history.js';
import { createAnswerGrace } from '../../../../src/workers/contract/liveness.js';
import { inodeState } from '../../../kit/assert/directory-state.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import {
  confirms,
  refuses,
  type ScriptedDriver,
  scriptedDriver,
  unreachable,
} from '../../../kit/workers/scripted-driver.js';

interface World {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  /** Runs a round after this time. */
  readonly runRound: (afterMs: number) => Promise<ReconcileRound>;
}

async function world(
  workers: Parameters<typeof scriptedDriver>[0],
  reconciler = createReconciler(),
): Promise<World> {
  const driver = scriptedDriver(workers);
  const test = testHost({ groups: { app: { driver } } });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  driver.notified.length = 0;
  driver.reads = 0;
  const { signal } = new AbortController();
  const runRound = async (afterMs: number): Promise<ReconcileRound> => {
    await test.clock.advance(afterMs);
    return reconciler.runRound(test.host, { signal, loader: undefined });
  };
  return { test, driver, runRound };
}

describe('a round of the reconciler', () => {
  it('notifies a worker again with a growing delay, and returns whether the ledger changed', async () => {
    const { test, driver, runRound } = await world({ a: confirms, b: unreachable });
    using _ = test;
    const changes: boolean[] = [];
    for (let at = 0; at < 12; at++) changes.push((await runRound(5000)).hasChanged);
    assert.deepEqual(driver.notified, ['b 1', 'b 1', 'b 1'], 'after 5, 15 and 35 seconds');
    assert.equal(changes.filter(Boolean).length, 3);
    assert.equal((await runRound(0)).hasChanged, false);
  });

  it('does not write to the disk while nothing changes', async () => {
    const { test, driver, runRound } = await world({ a: confirms, b: confirms });
    using _ = test;
    await runRound(5000);
    const before = inodeState(test.host.paths.state);
    for (let at = 0; at < 3; at++)
      assert.deepEqual(await runRound(5000), { hasChanged: false, loader: undefined });
    assert.deepEqual(inodeState(test.host.paths.state), before);
    assert.deepEqual([driver.notified, driver.reads], [[], 4]);
  });

  it('notifies a new worker in the round that finds it', async () => {
    const { test, driver, runRound } = await world({});
    using _ = test;
    driver.workers.set('late', confirms);
    assert.equal((await runRound(5000)).hasChanged, true);
    assert.deepEqual(driver.notified, ['late 1']);
  });

  it('records the final notification in the history with its id, and not every attempt', async () => {
    const { test, driver, runRound } = await world({ a: unreachable });
    using _ = test;
    const entries = () => readHistory(test.host.paths, { limit: 10 });
    const before = entries().length;
    await runRound(5000);
    assert.equal(entries().length, before);
    driver.workers.set('a', confirms);
    await runRound(10_000);
    const [entry] = entries();
    assert.deepEqual([entry?.result.trigger, entry?.result.workers[0]?.state], ['pending', 'confirmed']);
    assert.equal(entry?.result.workers[0]?.notificationId, `${entry?.result.cycle}.1`);
    assert.equal(test.host.ledger.read().workers['app/a']?.notificationId, `${entry?.result.cycle}.1`);
  });

  it('reports a late refusal to its caller', async () => {
    const refusals: string[] = [];
    const reconciler = createReconciler({
      onRefused: async (host, error) => void refusals.push(`${host.config.host.id} ${error.code}`),
    });
    const { test, driver, runRound } = await world({ a: unreachable }, reconciler);
    using _ = test;
    driver.workers.set('a', refuses('no'));
    await runRound(5000);
    assert.deepEqual(refusals, ['test WORKER_REFUSED']);
  });

  it('reads a slow group only for a small part of the time', async () => {
    const { test, driver, runRound } = await world({ a: confirms });
    using _ = test;
    const { members } = driver;
    driver.members = async () => {
      await test.clock.sleep(1000);
      return members();
    };
    for (let at = 0; at < 9; at++) await runRound(5000);
    assert.equal(driver.reads, 3, 'at once, and then every twenty seconds');
  });

  it('confirms a worker that is back within two rounds, while the driver waits for absent ones', async () => {
    const { test, driver, runRound } = await world({ a: confirms });
    using _ = test;
    const grace = createAnswerGrace(test.clock, 3000);
    let isDead = true;
    driver.liveness = (worker) => grace.within(worker, async () => (isDead ? 'dead' : 'alive'));
    await runRound(60_000);
    await runRound(5000);
    const entry = () => test.host.ledger.read().workers['app/a'];
    assert.notEqual(entry()?.goneAtMs, undefined);
    isDead = false;
    await runRound(5000);
    assert.deepEqual([entry()?.goneAtMs, entry()?.state], [undefined, 'confirmed']);
    assert.deepEqual(driver.notified, ['a 1']);
  });

  it('checks the liveness of confirmed workers once a minute, and of dead ones in each round', async () => {
    const { test, driver, runRound } = await world({ a: confirms });
    using _ = test;
    let isDead = false;
    let asked = 0;
    driver.liveness = async () => {
      asked += 1;
      return isDead ? 'dead' : 'alive';
    };
    const goneAtMs = (): number | undefined => test.host.ledger.read().workers['app/a']?.goneAtMs;
    for (let at = 0; at < 6; at++) await runRound(5000);
    assert.equal(asked, 1);
    isDead = true;
    for (let at = 0; at < 6; at++) await runRound(5000);
    assert.equal(goneAtMs(), undefined);
    assert.equal((await runRound(5000)).hasChanged, true);
    assert.equal(goneAtMs(), test.clock.nowMs());
    isDead = false;
    await runRound(5000);
    assert.deepEqual([driver.notified, goneAtMs()], [['a 1'], undefined]);
  });

  it('checks confirmed workers and slow groups at the given intervals', async () => {
    const intervals = { roundEveryMs: 1000, livenessEveryMs: 1000, maxReadGapMs: 2000 };
    const { test, driver, runRound } = await world({ a: confirms }, createReconciler({ intervals }));
    using _ = test;
    let asked = 0;
    driver.liveness = async () => {
      asked += 1;
      return 'alive';
    };
    for (let at = 0; at < 4; at++) await runRound(1000);
    assert.deepEqual([asked, driver.reads], [4, 4]);
    const { members } = driver;
    driver.members = async () => {
      await test.clock.sleep(1000);
      return members();
    };
    for (let at = 0; at < 4; at++) await runRound(1000);
    assert.equal(driver.reads, 6, 'a second to read and two to wait, and not twenty');
  });

  it('checks the liveness of confirmed workers every 2 s in a bake time, and every minute otherwise', async () => {
    let isBaking = false;
    const reconciler = createReconciler({ isBaking: () => isBaking });
    const { test, driver, runRound } = await world({ a: confirms }, reconciler);
    using _ = test;
    let asked = 0;
    driver.liveness = async () => {
      asked += 1;
      return 'alive';
    };
    for (let at = 0; at < 12; at++) await runRound(5000);
    assert.equal(asked, 1);
    isBaking = true;
    for (let at = 0; at < 5; at++) await runRound(2000);
    assert.equal(asked, 6);
    assert.deepEqual(
      [true, false].map((one) => identityGapMs({ isBaking: one })),
      [2000, 60_000],
    );
  });

  it('does not let a slow group delay others', async () => {
    const { test, driver, runRound } = await world({ a: confirms });
    using _ = test;
    const { members } = driver;
    const other = scriptedDriver({ b: confirms });
    const [group] = test.host.groups;
    const groups = [group!, { config: { ...group!.config, name: 'other' }, driver: other }];
    Object.assign(test.host, { groups });
    driver.members = async () => {
      // The clock advances at once: let the read of the other group finish first.
      await new Promise((resolve) => setImmediate(resolve));
      await test.clock.sleep(1000);
      return members();
    };
    for (let at = 0; at < 9; at++) await runRound(5000);
    assert.equal(driver.reads, 3);
    assert.ok(other.reads >= 9);
  });

  it('reads a group again with a growing delay while its read fails', async () => {
    const { test, driver, runRound } = await world({ a: confirms });
    using _ = test;
    driver.unread = 'EACCES';
    for (let at = 0; at < 12; at++) await runRound(5000);
    assert.equal(driver.reads, 4, 'after 5, 10, 20 and 40 seconds');
    driver.unread = undefined;
    for (let at = 0; at < 12; at++) await runRound(5000);
    assert.equal(test.host.ledger.read().unreadSets, undefined);
  });

  it('never rejects, whatever a driver does', async () => {
    const { test, driver, runRound } = await world({ a: confirms });
    using _ = test;
    driver.members = async () => {
      throw new TypeError('a bug');
    };
    assert.equal((await runRound(5000)).hasChanged, false);
  });
});

describe('runReconcileLoop', () => {
  it('runs a round every five seconds until it is stopped, with the other work around it', async () => {
    const clock = fakeClock();
    const stop = new AbortController();
    const calls: string[] = [];
    const note = (text: string) => async (): Promise<void> => void calls.push(text);
    const loop = runReconcileLoop({
      clock,
      stop: stop.signal,
      before: note('before'),
      runRound: note('round'),
      after: note('after'),
    });
    await clock.advance(0);
    await clock.advance(5000);
    await clock.advance(4999);
    assert.deepEqual(calls, ['before', 'round', 'after', 'before']);
    stop.abort();
    await loop;
    assert.equal(calls.length, 4);
  });

  it('runs rounds at the given interval', async () => {
    const clock = fakeClock();
    const stop = new AbortController();
    let rounds = 0;
    const nothing = async (): Promise<void> => undefined;
    const runRound = async (): Promise<void> => {
      rounds += 1;
    };
    const loop = runReconcileLoop({
      clock,
      stop: stop.signal,
      before: nothing,
      runRound,
      after: nothing,
      roundEveryMs: 1000,
    });
    await clock.advance(0);
    await clock.advance(1000);
    await clock.advance(1000);
    assert.equal(rounds, 2);
    stop.abort();
    await loop;
  });
});
