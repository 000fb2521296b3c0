// A worker that did not run at the activation of a policy, and refuses it later.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { leaveWhenRefused } from '../../../src/agent/cycle/late-refusal.js';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { noteLateAnswer } from '../../../src/agent/notify/worker-ledger.js';
import { pause } from '../../../src/agent/select/pause.js';
import type { WorkerGroupConfig } from '../../../src/core/config/config.js';
import { settleNow } from '../../kit/agent/settle-now.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import {
  confirms,
  refuses,
  type ScriptedDriver,
  scriptedDriver,
  unreachable,
} from '../../kit/workers/scripted-driver.js';

const current = (test: TestHost): string => fs.readlinkSync(test.host.paths.current);

interface Scene {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  readonly ends: CycleEnd[];
  /** The reconcile round of the agent between cycles. */
  settle(): Promise<void>;
}

/** `b` did not run at the activation of version 2; from now on it refuses it. */
async function lateNo(config: Partial<WorkerGroupConfig> = {}): Promise<Scene> {
  let away = false;
  const b = (generation: number) => {
    if (generation !== 2) return confirms(generation);
    return away ? unreachable() : refuses('rule 7')();
  };
  const driver = scriptedDriver({ a: confirms, b });
  const test = testHost({ groups: { app: { driver, config } } });
  await test.publish('access', { f: '1' }, { serial: 1 });
  assert.equal((await test.pull()).exitCode, 0);
  await test.publish('access', { f: '2' }, { serial: 2 });
  away = true;
  assert.equal((await test.pull()).exitCode, 4);
  away = false;
  driver.notified.length = 0;
  const ends: CycleEnd[] = [];
  const onRefused = leaveWhenRefused((end) => ends.push(end));
  const settle = async (): Promise<void> => {
    await settleNow(test.host, { onRefused: (refusal) => onRefused(test.host, refusal) });
  };
  return { test, driver, ends, settle };
}

describe('a worker that refuses the active release', () => {
  it('causes a rollback in a cycle of its own, is remembered, and every worker is notified', async () => {
    const { test, driver, ends, settle } = await lateNo();
    using _ = test;
    await settle();
    assert.equal(current(test), 'generations/1');
    assert.deepEqual(driver.notified, ['b 2', 'a 1', 'b 1']);
    const [end] = ends;
    assert.deepEqual(
      [end?.result.outcome, end?.result.exitCode, end?.result.problems[0]?.code, end?.result.trigger],
      ['rolled-back', 5, 'WORKER_REFUSED', 'pending'],
    );
    const { fromGeneration, generation, changed, bundles } = end?.result ?? {};
    assert.deepEqual([fromGeneration, generation, changed], [2, 1, true]);
    assert.deepEqual(
      bundles?.map((one) => [one.bundle, one.outcome, one.fromSerial, one.toSerial]),
      [['access', 'rolled-back', 1, 2]],
    );
    assert.equal(end?.progress.steps.at(-1)?.step, 'restore');
    assert.equal(test.host.refusals.read().refusals[0]?.code, 'WORKER_REFUSED');
    assert.equal(test.host.ledger.read().previous, undefined);
    const next = await test.pull();
    assert.deepEqual([next.exitCode, next.problems[0]?.code], [3, 'REMEMBERED_REFUSAL']);
    driver.notified.length = 0;
    await settle();
    assert.deepEqual([driver.notified, ends.length], [[], 1], 'it is over');
  });

  it('gives a pull without a new release the outcome rolled-back', async () => {
    const { test, driver } = await lateNo();
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [5, 'WORKER_REFUSED']);
    assert.deepEqual([result.changed, result.generation], [true, 1]);
    assert.deepEqual(driver.notified, ['b 2', 'a 1', 'b 1']);
  });

  it('waits for the end of a pause, or for a person who forces', async () => {
    const { test, driver, ends, settle } = await lateNo();
    using _ = test;
    const { host } = test;
    const paused = pause(host, { by: 'anna', reason: 'freeze', untilMs: test.clock.nowMs() + 60_000 });
    await settle();
    assert.deepEqual([driver.notified, ends.length, current(test)], [['b 2'], 0, 'generations/2']);
    const { exitCode, problems } = await test.pull();
    assert.deepEqual([exitCode, problems[0]?.code, current(test)], [4, 'WORKER_REFUSED', 'generations/2']);
    await test.clock.advance(60_000);
    await settle();
    assert.deepEqual([ends.length, current(test)], [1, 'generations/1']);
    const forced = await lateNo();
    using _forced = forced.test;
    setLedger(forced.test.host.ledger, { pause: paused.pause });
    await forced.settle();
    assert.equal((await forced.test.pull({ force: 'yes' })).exitCode, 5);
  });

  it('without a notification, as when it connects, causes a rollback too', async () => {
    const { test, driver, ends, settle } = await lateNo();
    using _ = test;
    const answer = { group: 'app', worker: 'b', generation: 2, text: 'no', atMs: 0 } as const;
    noteLateAnswer(test.host, { ...answer, state: 'refused' }, 2);
    await settle();
    assert.deepEqual([ends[0]?.result.exitCode, current(test)], [5, 'generations/1']);
    assert.deepEqual(driver.notified, ['a 1', 'b 1']);
  });

  it('and has used it before is reported, and the policy stays', async () => {
    const { test, driver, ends, settle } = await lateNo();
    using _ = test;
    driver.workers.set('b', confirms);
    await settle();
    driver.workers.set('b', refuses('a trouble of its own'));
    const answer = { group: 'app', worker: 'b', generation: 2, text: 'no', atMs: 0 } as const;
    noteLateAnswer(test.host, { ...answer, state: 'refused' }, 2);
    await settle();
    assert.deepEqual([ends.length, current(test)], [0, 'generations/2']);
    assert.deepEqual(test.host.refusals.read().refusals, []);
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [4, 'WORKER_REFUSED']);
    driver.workers.set('b', confirms);
    assert.equal((await test.pull()).exitCode, 0, 'mended, and asked again when a person pulls');
  });

  it('does not cause a rollback to a generation that was refused before: the policy stays, and it is reported', async () => {
    let away = false;
    const a = (generation: number) => {
      if (generation !== 2 && generation !== 3) return confirms(generation);
      return away ? unreachable() : refuses('no')();
    };
    using test = testHost({ groups: { app: { driver: scriptedDriver({ a }) } } });
    for (const [serial, exitCode] of [
      [1, 0],
      [2, 5],
      [3, 4],
    ] as const) {
      away = serial === 3;
      await test.publish('access', { f: `${serial}` }, { serial });
      assert.equal((await test.pull()).exitCode, exitCode);
    }
    away = false;
    const bundles = `${test.host.paths.bundles}/access`;
    const first = fs.readdirSync(bundles).find((one) => one.startsWith('1-'));
    fs.writeFileSync(`${bundles}/${first}/f`, 'damaged');
    const result = await test.pull();
    assert.deepEqual([result.exitCode, current(test)], [4, 'generations/3']);
  });

  it('and never used it causes a rollback, also after a refusal by one that had used it', async () => {
    const { test, driver, ends, settle } = await lateNo();
    using _ = test;
    driver.workers.set('b', unreachable);
    await settle();
    const answer = { group: 'app', generation: 2, text: 'no', atMs: 0, state: 'refused' } as const;
    noteLateAnswer(test.host, { ...answer, worker: 'a' }, 2);
    await settle();
    assert.deepEqual([ends.length, current(test)], [0, 'generations/2']);
    noteLateAnswer(test.host, { ...answer, worker: 'b' }, 2);
    driver.workers.set('b', confirms);
    await settle();
    assert.deepEqual([ends[0]?.result.exitCode, current(test)], [5, 'generations/1']);
  });

  it('does not remove a first policy, and is reported', async () => {
    let away = true;
    const driver = scriptedDriver({ a: confirms, b: () => (away ? unreachable() : refuses('no')()) });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { f: '1' }, { serial: 1 });
    assert.equal((await test.pull()).exitCode, 4);
    away = false;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [4, 'WORKER_REFUSED']);
    assert.equal(current(test), 'generations/1');
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.equal((await test.pull()).exitCode, 4, 'it is no better by itself');
  });

  it('of another bundle than the changed one does not cause a rollback', async () => {
    let away = false;
    const driver = scriptedDriver({
      b: (n) => (n === 1 ? confirms(n) : away ? unreachable() : refuses('no')()),
    });
    using test = testHost({
      bundles: [{ name: 'access' }, { name: 'views' }],
      groups: { app: { driver, config: { uses: ['access'] } } },
    });
    await test.publish('access', { f: '1' }, { serial: 1 });
    await test.publish('views', { f: '1' }, { serial: 1 });
    await test.pull();
    const { workers } = test.host.ledger.read();
    const waiting = { ...workers['app/b'], wanted: 1, state: 'pending', text: '', atMs: 0 } as const;
    setLedger(test.host.ledger, { workers: { 'app/b': waiting } });
    away = true;
    await test.publish('views', { f: '2' }, { serial: 2 });
    await test.pull();
    away = false;
    const result = await test.pull();
    assert.equal(result.exitCode, 4);
    assert.equal(current(test), 'generations/2');
  });

  it('and refuses the restored release too blocks the host', async () => {
    const { test, driver, ends, settle } = await lateNo();
    using _ = test;
    driver.workers.set('b', (n) => refuses(n === 2 ? 'no' : 'another fault')());
    await settle();
    assert.deepEqual([ends[0]?.result.exitCode, current(test)], [6, 'generations/1']);
    driver.notified.length = 0;
    await settle();
    assert.equal(ends.length, 1, 'a block goes back no further');
    assert.equal((await test.pull()).exitCode, 6);
  });
});
