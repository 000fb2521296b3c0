// Sequences in which the answer of one worker could count for another worker, or an earlier answer for a later one: the outcome
// is never better than what the workers really use.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import type { WorkerGroupConfig } from '../../../src/core/config/config.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { livingDriver } from '../../kit/workers/living-workers.js';
import {
  confirms,
  refuses,
  type ScriptedDriver,
  scriptedDriver,
  unreachable,
} from '../../kit/workers/scripted-driver.js';

const notified = (generation: number): Answer => ({ kind: 'notified', text: `accepted ${generation}` });

const probe = (script: string): Partial<WorkerGroupConfig> => ({
  probe: { run: ['sh', '-c', script, 'probe', '{worker}'], timeoutMs: 60_000, retry: 0 },
});
const groupProbe = (script: string): Partial<WorkerGroupConfig> => ({
  probe: { run: ['sh', '-c', script], timeoutMs: 60_000, retry: 0 },
});

const publish = (test: TestHost, serial: number): Promise<Buffer> =>
  test.publish('access', { 'policy.yaml': `${serial}` }, { serial });
const codes = ({ problems }: CycleResult): string[] => problems.map((one) => one.code);
const stateOf = (test: TestHost, key: string): string | undefined =>
  test.host.ledger.read().workers[key]?.state;

describe('a cycle without a new release', () => {
  it('is not confirmed while a worker is only notified', async () => {
    using test = testHost({ groups: { app: { driver: scriptedDriver({ a: notified }, 'early') } } });
    await publish(test, 1);
    assert.equal((await test.pull()).confirmed, false);
    const { outcome, confirmed } = await test.pull();
    assert.deepEqual([outcome, confirmed], ['unchanged', false]);
  });
});

describe('a group probe', () => {
  it('does not run for a group without a notified worker, which degrades the pull and causes no restore', async () => {
    const driver = scriptedDriver({ a: confirms });
    using dir = tempDir();
    const up = dir.join('up');
    fs.writeFileSync(up, '');
    using test = testHost({ groups: { app: { driver, config: groupProbe(`test -e ${up}`) } } });
    await publish(test, 1);
    await test.pull();
    fs.rmSync(up);
    driver.workers.set('a', unreachable);
    await publish(test, 2);
    const result = await test.pull();
    assert.deepEqual(
      [result.outcome, result.generation, codes(result)],
      ['degraded', 2, ['WORKER_UNREACHABLE']],
    );
  });

  it('does not block a restore during which its workers are unreachable', async () => {
    const away = scriptedDriver({ a: confirms });
    const other = scriptedDriver({ b: confirms });
    using dir = tempDir();
    const up = dir.join('up');
    fs.writeFileSync(up, '');
    using test = testHost({
      groups: { away: { driver: away, config: groupProbe(`test -e ${up}`) }, other: { driver: other } },
    });
    await publish(test, 1);
    await test.pull();
    fs.rmSync(up);
    away.workers.set('a', unreachable);
    other.workers.set('b', (generation) => (generation === 1 ? confirms(1) : refuses('no')()));
    await publish(test, 2);
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.generation], ['rolled-back', 1]);
    assert.equal(test.host.ledger.read().blocked, undefined);
  });

  it('does not confirm a worker that is notified later, if another worker could have answered it', async () => {
    const driver = scriptedDriver({ a: notified, b: unreachable }, 'early');
    using test = testHost({ groups: { app: { driver, config: groupProbe('true') } } });
    await publish(test, 1);
    await test.pull();
    driver.workers.set('b', notified);
    await test.pull();
    assert.deepEqual([stateOf(test, 'app/a'), stateOf(test, 'app/b')], ['confirmed', 'notified']);
    assert.equal((await test.pull()).confirmed, false);
  });
});

describe('a probe of one group', () => {
  it('does not confirm a worker of another group', async () => {
    const [app, other] = [scriptedDriver({ a: notified }, 'early'), scriptedDriver({ b: notified }, 'early')];
    using test = testHost({
      groups: { app: { driver: app, config: groupProbe('true') }, other: { driver: other } },
    });
    await publish(test, 1);
    const { confirmed } = await test.pull();
    assert.deepEqual(
      [confirmed, stateOf(test, 'app/a'), stateOf(test, 'other/b')],
      [false, 'confirmed', 'notified'],
    );
  });
});

describe('a pending worker with a failing probe of its own', () => {
  it('stays pending and reported until it uses the active generation', async () => {
    const driver = scriptedDriver({ a: notified, b: unreachable }, 'early');
    using dir = tempDir();
    fs.writeFileSync(dir.join('a'), '');
    const seen = probe(`test -e ${join(dir.path, '$1')}`);
    using test = testHost({ groups: { app: { driver, config: seen } } });
    await publish(test, 1);
    assert.equal((await test.pull()).exitCode, 4);
    driver.workers.set('b', notified);
    for (let pull = 0; pull < 3; pull++) {
      const result = await test.pull();
      assert.deepEqual([result.outcome, result.exitCode, result.generation], ['degraded', 4, 1]);
    }
    fs.writeFileSync(dir.join('b'), '');
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.confirmed], ['unchanged', true]);
    assert.equal(stateOf(test, 'app/b'), 'confirmed');
  });

  it('is pending too while its probe gives no verdict', async () => {
    const driver = scriptedDriver({ a: unreachable }, 'early');
    using dir = tempDir();
    const missing = dir.join('probe');
    const config: Partial<WorkerGroupConfig> = {
      probe: { run: [missing, '{worker}'], timeoutMs: 60_000, retry: 0 },
    };
    using test = testHost({ groups: { app: { driver, config } } });
    await publish(test, 1);
    await test.pull();
    driver.workers.set('a', notified);
    await test.pull();
    assert.equal((await test.pull()).exitCode, 4);
    fs.writeFileSync(missing, '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    assert.deepEqual([(await test.pull()).exitCode, stateOf(test, 'app/a')], [0, 'confirmed']);
  });
});

describe('a worker that joins while the others are notified', () => {
  const appearing = (): ScriptedDriver => {
    const driver = scriptedDriver({ a: confirms });
    driver.workers.set('a', (generation) => {
      driver.workers.set('late', confirms);
      return confirms(generation);
    });
    return driver;
  };

  it('is notified too, before the generation counts as confirmed', async () => {
    const driver = appearing();
    using test = testHost({ groups: { app: { driver } } });
    await publish(test, 1);
    const result = await test.pull();
    assert.deepEqual(driver.notified, ['a 1', 'late 1']);
    assert.deepEqual(
      result.workers.map((one) => [one.worker, one.state]),
      [
        ['a', 'confirmed'],
        ['late', 'confirmed'],
      ],
    );
  });

  it('can refuse the generation', async () => {
    const driver = appearing();
    driver.workers.delete('late');
    using test = testHost({ groups: { app: { driver } } });
    await publish(test, 1);
    await test.pull();
    driver.workers.delete('late');
    driver.workers.set('a', (generation) => {
      driver.workers.set('late', (one) => (one === 2 ? refuses('no view eu')() : confirms(one)));
      return confirms(generation);
    });
    await publish(test, 2);
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.generation], ['rolled-back', 1]);
  });
});

describe('a rolling group during a restore', () => {
  it('notifies a worker with a new process, because it may have read the refused generation', async () => {
    const driver = scriptedDriver({ a: confirms, b: confirms });
    driver.processes.set('a', 'first-a').set('b', 'first-b');
    using test = testHost({ groups: { app: { driver, config: { rolling: 1 } } } });
    await publish(test, 1);
    await test.pull();
    await test.clock.advance(20_000);
    driver.notified.length = 0;
    driver.workers.set('a', (generation) => {
      if (generation === 1) return confirms(1);
      driver.processes.set('b', 'second-b');
      return refuses('no')();
    });
    await publish(test, 2);
    const result = await test.pull();
    assert.deepEqual([result.outcome, driver.notified], ['rolled-back', ['a 2', 'a 1', 'b 1']]);
  });
});

describe('a rollback that does not affect a group', () => {
  it('is degraded while a worker of the group is pending', async () => {
    const one = scriptedDriver({ a: confirms });
    using test = testHost({
      bundles: [{ name: 'one' }, { name: 'two' }],
      groups: { app: { driver: one, config: { uses: ['one'] } } },
    });
    await test.publish('one', { f: '1' }, { serial: 1 });
    await test.publish('two', { f: '1' }, { serial: 1 });
    await test.pull();
    one.workers.set('a', unreachable);
    await test.publish('one', { f: '2' }, { serial: 2 });
    await test.pull();
    await test.publish('two', { f: '2' }, { serial: 2 });
    await test.pull();
    const { signal } = new AbortController();
    const { result } = await rollBack(test.host, { by: 'kim', signal, onEvent: () => undefined });
    assert.deepEqual(
      [result.outcome, result.exitCode, codes(result)],
      ['degraded', 4, ['WORKER_UNREACHABLE']],
    );
  });
});

describe('a rollback to the generation that a worker last confirmed', () => {
  it('restarts the worker if it was notified of another generation since, because it may use that', async () => {
    const driver = livingDriver({ a: confirms });
    const config = { when: ['rules/**'], restartWhen: ['worker.conf'] };
    using test = testHost({ groups: { app: { driver, config } } });
    await test.publish('access', { 'worker.conf': '1' }, { serial: 1 });
    await test.pull();
    await test.publish('access', { 'worker.conf': '2' }, { serial: 2 });
    const { confirmed } = await test.pull();
    assert.equal(confirmed, false, 'a restart proves nothing');
    driver.notified.length = 0;
    const { signal } = new AbortController();
    await rollBack(test.host, { by: 'kim', signal, onEvent: () => undefined });
    assert.deepEqual(driver.notified, ['restart a 1']);
  });
});
