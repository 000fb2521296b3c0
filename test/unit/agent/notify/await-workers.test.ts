import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitWorkers } from '../../../../src/agent/notify/membership.js';
import type { WorkerWait } from '../../../../src/core/cycle/cycle-report.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

const { signal } = new AbortController();

/** Two workers that confirmed generation 1 connect within 6 s after their socket opens; none has connected yet. */
async function world(comeWithinMs?: number): Promise<{ test: TestHost; driver: ScriptedDriver }> {
  const scripted = scriptedDriver({ a: confirms, b: confirms });
  const driver = Object.assign(
    scripted,
    comeWithinMs === undefined
      ? {}
      : { mayComeForMs: () => Math.max(0, openedAtMs + comeWithinMs - test.clock.monotonicMs()) },
  );
  const test: TestHost = testHost({ groups: { app: { driver } } });
  const openedAtMs = test.clock.monotonicMs();
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  driver.workers.clear();
  driver.reads = 0;
  return { test, driver };
}

describe('workers that connect by themselves', () => {
  it('are awaited until all known workers have connected', async () => {
    const { test, driver } = await world(6000);
    using _ = test;
    const { clock } = test;
    const sleep = async (ms: number): Promise<void> => {
      await clock.sleep(ms);
      driver.workers.set(driver.workers.has('a') ? 'b' : 'a', confirms);
    };
    const begunMs = clock.monotonicMs();
    await awaitWorkers({ ...test.host, clock: { ...clock, sleep } }, signal);
    assert.deepEqual([[...driver.workers.keys()], clock.monotonicMs() - begunMs], [['a', 'b'], 100]);
  });

  it('are awaited until the time of their driver is over, and no longer', async () => {
    const { test } = await world(6000);
    using _ = test;
    const begunMs = test.clock.monotonicMs();
    await awaitWorkers(test.host, signal);
    assert.equal(test.clock.monotonicMs() - begunMs, 6000);
  });

  it('are reported once while they are missing, with the end of the wait', async () => {
    const { test, driver } = await world(6000);
    using _ = test;
    const reported: WorkerWait[] = [];
    const untilAtMs = test.clock.nowMs() + 6000;
    await awaitWorkers(test.host, signal, (wait) => reported.push(wait));
    assert.deepEqual(reported, [{ group: 'app', missing: ['a', 'b'], untilAtMs }]);
    driver.workers.set('a', confirms).set('b', confirms);
    await awaitWorkers(test.host, signal, () => assert.fail('no worker is missing'));
  });

  it('are not awaited if they had departed before, or after a stop request', async () => {
    const { test } = await world(6000);
    using _ = test;
    const begunMs = test.clock.monotonicMs();
    await awaitWorkers(test.host, AbortSignal.abort());
    const { workers } = test.host.ledger.read();
    const gone = Object.entries(workers).map(([key, one]) => [key, { ...one, goneAtMs: begunMs }]);
    setLedger(test.host.ledger, { workers: Object.fromEntries(gone) });
    await awaitWorkers(test.host, signal);
    assert.equal(test.clock.monotonicMs() - begunMs, 0);
  });
});

describe('workers of another group', () => {
  it('do not cause a wait', async () => {
    const driver = scriptedDriver({ a: confirms });
    const other = scriptedDriver({ b: confirms });
    using test = testHost({ groups: { app: { driver }, other: { driver: other } } });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    Object.assign(driver, { mayComeForMs: () => 6000 });
    await awaitWorkers(test.host, signal, () => assert.fail('no worker is missing'));
  });
});

describe('a worker that was not notified of the active generation, and may still connect', () => {
  it('is pending and not departed until its time to connect is over', async () => {
    const { test } = await world(6000);
    using _ = test;
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    const early = await test.pull();
    assert.deepEqual([early.exitCode, early.confirmed], [4, false]);
    await test.clock.advance(6000);
    const late = await test.pull();
    assert.deepEqual([late.exitCode, late.confirmed], [0, false], 'no member can confirm');
  });
});

describe('workers that their driver finds', () => {
  it('are not awaited', async () => {
    const { test, driver } = await world();
    using _ = test;
    await awaitWorkers(test.host, signal);
    assert.equal(driver.reads, 0);
  });
});
