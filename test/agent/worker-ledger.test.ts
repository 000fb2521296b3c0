import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { dueDelayMs, settleDueApart } from '../../src/agent/settle-due.js';
import { dueWorkers, noteLateAnswer, noteWorkers, wantGeneration } from '../../src/agent/worker-ledger.js';
import type { WorkerResult } from '../../src/core/cycle-report.js';
import { directoryState } from '../support/directory-state.js';
import {
  confirms,
  refuses,
  type ScriptedDriver,
  scriptedDriver,
  unreachable,
} from '../support/scripted-driver.js';
import { type TestHost, testHost } from '../support/test-host.js';

const signal = new AbortController().signal;
const settle = (test: TestHost) => settleDueApart(test.host, { cycle: 'c-1', signal });
const stateOf = (test: TestHost, key: string): string | undefined =>
  test.host.ledger.read().workers[key]?.state;

async function withDueWorker(): Promise<{ test: TestHost; driver: ScriptedDriver }> {
  const driver = scriptedDriver({ a: confirms, b: unreachable });
  const test = testHost({ groups: { app: { driver } } });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  assert.equal((await test.pull()).exitCode, 4);
  driver.told.length = 0;
  return { test, driver };
}

describe('workers that are due', () => {
  it('are told apart from the cycles, they alone, until they confirm', async () => {
    const { test, driver } = await withDueWorker();
    using _ = test;
    assert.equal(await settle(test), 'still-due');
    driver.workers.set('b', confirms);
    assert.equal(await settle(test), 'told');
    assert.deepEqual(driver.told, ['b 1', 'b 1']);
    assert.deepEqual([stateOf(test, 'app/a'), stateOf(test, 'app/b')], ['confirmed', 'confirmed']);
    assert.deepEqual(fs.readdirSync(test.host.paths.staging), []);
  });

  it('cost no write when there are none', async () => {
    const { test, driver } = await withDueWorker();
    using _ = test;
    driver.workers.set('b', confirms);
    await settle(test);
    const before = directoryState(test.host.paths.state);
    assert.equal(await settle(test), 'nothing-due');
    assert.deepEqual(directoryState(test.host.paths.state), before);
  });

  it('are forgotten when they are gone', async () => {
    const { test, driver } = await withDueWorker();
    using _ = test;
    driver.workers.delete('b');
    assert.equal(await settle(test), 'told');
    assert.deepEqual(Object.keys(test.host.ledger.read().workers), ['app/a']);
    assert.deepEqual(driver.told, []);
  });

  it('are due no more when they refuse: that is an answer', async () => {
    const { test, driver } = await withDueWorker();
    using _ = test;
    driver.workers.set('b', refuses('no view eu'));
    await settle(test);
    assert.equal(stateOf(test, 'app/b'), 'refused');
    assert.equal(dueWorkers(test.host.ledger.read()).size, 0);
  });

  it('are told later and later, at last every five minutes', () => {
    assert.deepEqual([0, 1, 2, 5, 6, 100].map(dueDelayMs), [5000, 10_000, 20_000, 160_000, 300_000, 300_000]);
  });
});

describe('the ledger of workers', () => {
  const result = (generation: number, state: WorkerResult['state']): WorkerResult => ({
    group: 'app',
    worker: 'a',
    state,
    generation,
    text: 'x'.repeat(1000),
    atMs: 7,
  });

  it('wants a generation of those whose group is told, and leaves the others', async () => {
    using test = testHost({ groups: { app: {}, other: {} } });
    const { host } = test;
    noteWorkers(host, [result(1, 'confirmed'), { ...result(1, 'confirmed'), group: 'other' }]);
    const groups = host.groups.filter((one) => one.config.name === 'app');
    const { workers } = wantGeneration(host.ledger.read(), groups, 2, 9);
    assert.deepEqual(
      [workers['app/a']?.wanted, workers['app/a']?.confirmed, workers['app/a']?.state],
      [2, 1, 'waiting'],
    );
    assert.equal(workers['other/a']?.wanted, 1);
  });

  it('keeps since when a state holds, and bounds what a worker said', () => {
    using test = testHost();
    noteWorkers(test.host, [result(1, 'confirmed')]);
    noteWorkers(test.host, [{ ...result(1, 'confirmed'), atMs: 99 }]);
    const known = test.host.ledger.read().workers['app/a'];
    assert.deepEqual([known?.atMs, known?.text.length], [7, 500]);
  });

  it('takes a late answer about what the worker is to use', () => {
    using test = testHost();
    noteWorkers(test.host, [result(2, 'unreachable')]);
    noteLateAnswer(test.host, result(2, 'confirmed'), 2);
    assert.deepEqual(
      [stateOf(test, 'app/a'), test.host.ledger.read().workers['app/a']?.confirmed],
      ['confirmed', 2],
    );
  });

  it('takes no late answer about an older generation: it would be the wanted one again', () => {
    using test = testHost();
    noteWorkers(test.host, [result(3, 'unreachable')]);
    noteLateAnswer(test.host, result(2, 'confirmed'), 3);
    const known = test.host.ledger.read().workers['app/a'];
    assert.deepEqual([known?.wanted, known?.state, known?.confirmed], [3, 'unreachable', undefined]);
  });

  it('adds a worker that came later, if it answers about what is active', () => {
    using test = testHost();
    noteLateAnswer(test.host, result(1, 'confirmed'), 2);
    assert.equal(stateOf(test, 'app/a'), undefined);
    noteLateAnswer(test.host, result(2, 'confirmed'), 2);
    assert.equal(stateOf(test, 'app/a'), 'confirmed');
  });
});
