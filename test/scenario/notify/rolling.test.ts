// Rolling notification: when it stops, which workers a restore notifies, and how long it may take.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import type { WorkerGroupConfig } from '../../../src/core/config/config.js';
import { WritError } from '../../../src/core/errors.js';
import { unknownAnswerText } from '../../../src/core/status/worker-rules.js';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { settleNow } from '../../kit/agent/settle-now.js';
import { longCase } from '../../kit/assert/long-case.js';
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

const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 0 };
const current = (test: TestHost): string => fs.readlinkSync(test.host.paths.current);
const only = (generation: number, otherwise: () => Answer) => (asked: number) =>
  asked === generation ? confirms(asked) : otherwise();

/** Version 1 is active, version 2 is published; the recorded notifications are empty. */
async function secondRelease(driver: ScriptedDriver, config: Partial<WorkerGroupConfig>): Promise<TestHost> {
  const test = testHost({ groups: { app: { driver, config } } });
  await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
  assert.equal((await test.pull()).exitCode, 0);
  await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
  driver.notified.length = 0;
  return test;
}

describe('a rolling group', () => {
  const five = { a: confirms, b: confirms, c: confirms, d: confirms, e: confirms };

  it('notifies N workers at a time, the first one alone', async () => {
    const open = new Set<string>();
    const most: number[] = [];
    const driver = scriptedDriver(five);
    const notify = driver.reset;
    driver.reset = async (worker, options) => {
      open.add(worker);
      await Promise.resolve();
      most.push(open.size);
      const answer = await notify(worker, options);
      await new Promise((resolve) => setImmediate(resolve));
      open.delete(worker);
      return answer;
    };
    using test = await secondRelease(driver, { rolling: 2 });
    most.length = 0;
    assert.equal((await test.pull()).outcome, 'activated');
    assert.deepEqual(driver.notified, ['a 2', 'b 2', 'c 2', 'd 2', 'e 2']);
    assert.deepEqual(most, [1, 2, 2, 2, 2]);
  });

  it('notifies during the restore a worker that started during the move, because it may have read the refused generation', async () => {
    const driver = scriptedDriver({ a: confirms, b: confirms });
    using test = await secondRelease(driver, { rolling: 1 });
    driver.workers.delete('b');
    await settleNow(test.host);
    driver.workers.set('a', (generation) => {
      driver.workers.set('b', confirms);
      return only(1, refuses('no'))(generation);
    });
    assert.equal((await test.pull()).outcome, 'rolled-back');
    assert.deepEqual(driver.notified, ['a 2', 'a 1', 'b 1']);
  });

  it('stops at a refusal of the first worker, and restores only that one', async () => {
    const driver = scriptedDriver({ ...five, a: only(1, refuses('no')) });
    using test = await secondRelease(driver, { rolling: 2 });
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [5, 'WORKER_REFUSED']);
    assert.deepEqual(driver.notified, ['a 2', 'a 1']);
    assert.equal(current(test), 'generations/1');
    await settleNow(test.host);
    assert.deepEqual(driver.notified, ['a 2', 'a 1'], 'no other worker is notified');
    const { workers } = test.host.ledger.read();
    assert.deepEqual(
      Object.values(workers).map((one) => [one.wanted, one.state]),
      Object.keys(five).map(() => [1, 'confirmed']),
    );
  });

  it('stops at a refusal in the middle, and restores all workers notified so far', async () => {
    const driver = scriptedDriver({ ...five, c: only(1, refuses('no')) });
    using test = await secondRelease(driver, { rolling: 2 });
    assert.equal((await test.pull()).exitCode, 5);
    assert.deepEqual(driver.notified, ['a 2', 'b 2', 'c 2', 'a 1', 'b 1', 'c 1']);
  });

  it('stops at a refusal in another group too', async () => {
    const rolled = scriptedDriver(five);
    const slow = rolled.reset;
    rolled.reset = async (worker, options) => {
      await new Promise((resolve) => setImmediate(resolve));
      return slow(worker, options);
    };
    const other = scriptedDriver({ z: only(1, refuses('no')) });
    using test = testHost({
      groups: { app: { driver: rolled, config: { rolling: 1 } }, other: { driver: other } },
    });
    await test.publish('access', { f: '1' }, { serial: 1 });
    await test.pull();
    await test.publish('access', { f: '2' }, { serial: 2 });
    rolled.notified.length = 0;
    assert.equal((await test.pull()).exitCode, 5);
    assert.deepEqual(rolled.notified, ['a 2', 'a 1']);
  });

  it('uses the next worker as canary if the first cannot be reached', async () => {
    const driver = scriptedDriver({ a: only(1, unreachable), b: only(1, refuses('no')), c: confirms });
    using test = await secondRelease(driver, { rolling: 5 });
    assert.equal((await test.pull()).exitCode, 5);
    assert.deepEqual(driver.notified, ['a 2', 'b 2', 'a 1', 'b 1']);
  });

  it('runs a probe with {worker} before it notifies the next worker', async () => {
    using dir = tempDir();
    const driver = scriptedDriver({ a: confirms, b: confirms, c: confirms });
    const asks = `echo {worker} "\${WRIT_GENERATION_DIR##*/}" >> ${dir.join('asked')}`;
    const no = `[ "\${WRIT_GENERATION_DIR##*/}{worker}" != 2b ]`;
    const probe = { run: ['sh', '-c', `${asks}; ${no}`] as const, timeoutMs: 60_000, retry: 0 };
    using test = await secondRelease(driver, { rolling: 1, probe: { ...probe, run: [...probe.run] } });
    fs.rmSync(dir.join('asked'));
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [5, 'PROBE_FAILED']);
    assert.match(result.problems[0]?.message ?? '', /^app\/b: /);
    assert.deepEqual(driver.notified, ['a 2', 'b 2', 'a 1', 'b 1']);
    assert.deepEqual(fs.readFileSync(dir.join('asked'), 'utf8').trim().split('\n'), [
      'a 2',
      'b 2',
      'a 1',
      'b 1',
    ]);
  });

  it('notifies all workers during a restore after a crash, so that no worker keeps the refused generation', async () => {
    const driver = scriptedDriver({ ...five, e: only(1, refuses('no')) });
    using test = await secondRelease(driver, { rolling: 5 });
    assert.equal((await test.pull()).exitCode, 5);
    assert.deepEqual(driver.notified.slice(5), ['a 1', 'b 1', 'c 1', 'd 1', 'e 1']);
  });
});

describe('the ledger during a rolling notification', () => {
  const states = (test: TestHost): string[] =>
    Object.values(test.host.ledger.read().workers).map(
      ({ state, wanted, text }) => `${state} ${wanted}: ${text}`,
    );

  /** The ledger at each notification, as it is on disk after a kill. */
  function watched(driver: ScriptedDriver, onReset: (worker: string, generation: number) => void): void {
    const notify = driver.reset;
    driver.reset = async (worker, options) => {
      onReset(worker, options.target.generation);
      return notify(worker, options);
    };
  }

  it('has each answer as it arrives, and an unknown answer from the begin of a notification', async () => {
    const driver = scriptedDriver({ a: confirms, b: only(1, unreachable), c: confirms });
    using test = await secondRelease(driver, { rolling: 1 });
    const seen: string[][] = [];
    watched(driver, () => seen.push(states(test)));
    assert.equal((await test.pull()).outcome, 'degraded');
    const [a, begun, later] = [
      'confirmed 2: uses 2',
      `pending 2: ${unknownAnswerText}`,
      'pending 2: not notified yet',
    ];
    assert.deepEqual(seen, [
      [begun, later, later],
      [a, begun, later],
      [a, 'unreachable 2: ECONNREFUSED', begun],
    ]);
  });

  it('has each answer during a restore', async () => {
    const driver = scriptedDriver({ a: confirms, b: only(1, refuses('no')) });
    using test = await secondRelease(driver, { rolling: 1 });
    const seen: string[][] = [];
    watched(driver, (_, generation) => {
      if (generation === 1) seen.push(states(test));
    });
    assert.equal((await test.pull()).outcome, 'rolled-back');
    const begun = `pending 1: ${unknownAnswerText}`;
    assert.deepEqual(seen, [
      [begun, 'pending 1: not notified yet'],
      ['confirmed 1: uses 1', begun],
    ]);
  });

  it('has no answer of a pending worker before the verdict of its probe', async () => {
    using dir = tempDir();
    const probe = {
      run: ['sh', '-c', `[ ! -e ${dir.join('wrong')} ]`] as const,
      timeoutMs: 60_000,
      retry: 0,
    };
    const driver = scriptedDriver({ a: only(1, unreachable), b: only(1, unreachable) });
    using test = await secondRelease(driver, { rolling: 1, probe: { ...probe, run: [...probe.run] } });
    await test.pull();
    fs.writeFileSync(dir.join('wrong'), '');
    for (const worker of ['a', 'b']) driver.workers.set(worker, confirms);
    const seen: string[][] = [];
    watched(driver, () => seen.push(states(test)));
    await settleNow(test.host);
    assert.equal(seen.length, 2);
    assert.deepEqual(seen[1], seen[0]);
  });

  it('has the answers of pending workers that are notified between moves', async () => {
    const driver = scriptedDriver({ a: only(1, unreachable), b: only(1, unreachable) });
    using test = await secondRelease(driver, { rolling: 1 });
    await test.pull();
    for (const worker of ['a', 'b']) driver.workers.set(worker, confirms);
    const seen: string[][] = [];
    watched(driver, () => seen.push(states(test)));
    await settleNow(test.host);
    assert.deepEqual(seen[1], ['confirmed 2: uses 2', 'unreachable 2: ECONNREFUSED']);
  });

  it('reports a disk error at the end of the step, after all workers are notified', async () => {
    const driver = scriptedDriver({ a: confirms, b: confirms, c: confirms });
    using test = await secondRelease(driver, { rolling: 1 });
    const { ledger } = test.host;
    const { write } = ledger;
    watched(driver, (worker) => {
      ledger.write = (next) => {
        if (worker === 'c') return write(next);
        throw new WritError('DISK_FULL', 'no space left on device');
      };
    });
    assert.equal((await test.pull()).outcome, 'activated');
    assert.deepEqual(driver.notified, ['a 2', 'b 2', 'c 2']);
  });

  it('is written once for several answers of a large step', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `w${100 + index}`);
    const driver = scriptedDriver(Object.fromEntries(names.map((name) => [name, confirms])));
    using test = await secondRelease(driver, {});
    const { ledger } = test.host;
    const { write } = ledger;
    let writes = 0;
    ledger.write = (next) => {
      writes += 1;
      write(next);
    };
    assert.equal((await test.pull()).outcome, 'activated');
    assert.ok(writes < 60, `${writes} writes`);
  });
});

describe('a reset', () => {
  it('without an answer is retried; a refusal is an answer', async () => {
    let tries = 0;
    const late = (generation: number) =>
      generation === 2 && ++tries < 3 ? unreachable() : confirms(generation);
    const driver = scriptedDriver({ a: late });
    using test = await secondRelease(driver, { reset: { ...reset, retry: 2 } });
    assert.equal((await test.pull()).outcome, 'activated');
    assert.deepEqual(driver.notified, ['a 2', 'a 2', 'a 2']);
    const no = scriptedDriver({ a: only(1, refuses('no')) });
    using other = await secondRelease(no, { reset: { ...reset, retry: 2 } });
    assert.equal((await other.pull()).exitCode, 5);
    assert.deepEqual(no.notified, ['a 2', 'a 1']);
  });

  it('leaves a worker pending that never answers', async () => {
    const driver = scriptedDriver({ a: (generation) => (generation === 2 ? unreachable() : confirms(1)) });
    using test = await secondRelease(driver, { reset: { ...reset, retry: 1 } });
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [4, 'WORKER_UNREACHABLE']);
    assert.deepEqual(driver.notified, ['a 2', 'a 2']);
  });

  it('ends at the deadline of its group, and leaves the other workers pending', async () => {
    const driver = scriptedDriver({ a: confirms, b: confirms, c: confirms });
    const limits: number[] = [];
    using test = await secondRelease(driver, { rolling: 1, reset: { ...reset, deadlineMs: 1500 } });
    const notify = driver.reset;
    driver.reset = async (worker, options) => {
      limits.push(options.timeoutMs);
      await test.clock.sleep(900);
      return notify(worker, options);
    };
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.facts['worker']], [4, 'c']);
    assert.deepEqual(limits, [1000, 600]);
    assert.deepEqual(driver.notified, ['a 2', 'b 2']);
  });
});

describe('a probe', longCase, () => {
  it('has one deadline for all its attempts', async () => {
    using dir = tempDir();
    const probe = {
      run: ['sh', '-c', `echo >> ${dir.join('asked')}; exit 1`],
      timeoutMs: 60_000,
      retry: 100,
    };
    const driver = livingDriver({ a: confirms });
    using test = testHost({
      groups: {
        app: {
          driver,
          config: { probe: { ...probe, run: ['sh', ...probe.run.slice(1)], deadlineMs: 480_000 } },
        },
      },
    });
    const { sleep } = test.clock;
    // Pauses of 200 s, so that the rest for the third attempt is long enough for a real process.
    test.clock.sleep = (delayMs, signal) => sleep(400 * delayMs, signal);
    await test.publish('access', { f: '1' }, { serial: 1 });
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [5, 'PROBE_FAILED']);
    assert.equal(fs.readFileSync(dir.join('asked'), 'utf8').length, 3);
  });
});
