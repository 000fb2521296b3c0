// The driver of supervisord with the real one: the driver reports failures that supervisord reports as a success.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { supervisord } from '../../../src/workers/drivers/supervisord.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { testHost } from '../../kit/host/test-host.js';
import { needs } from '../../kit/programs/real-programs.js';
import { startSupervisord } from '../../kit/programs/real-supervisord.js';
import { driverContext } from '../../kit/workers/driver-context.js';

const reset = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 60_000 };

describe('the real supervisord', { ...needs('supervisord', 'supervisor'), ...longCase }, () => {
  it('signals each of two workers, restarts them one by one, and reports every failure', async () => {
    using dir = tempDir();
    await using real = await startSupervisord(dir.path);
    const options = { supervisord: real.socket, group: 'worker', signal: 'HUP' };
    const driver = supervisord.create(options, driverContext());
    const members = await driver.members();
    assert.deepEqual(members, ['worker:worker_0', 'worker:worker_1']);

    for (const worker of members) assert.equal((await driver.reset(worker, reset)).kind, 'notified');
    await until(() => real.lines(0).includes('HUP') && real.lines(1).includes('HUP'));
    assert.equal(real.lines(0).filter((line) => line.startsWith('started')).length, 1);

    const [first = '', second = ''] = members;
    assert.deepEqual(await driver.restart?.(first, reset), {
      kind: 'notified',
      text: `${first} stopped and started`,
    });
    assert.equal(real.lines(0).filter((line) => line.startsWith('started')).length, 2);
    assert.equal(real.lines(1).filter((line) => line.startsWith('started')).length, 1);
    assert.equal(await driver.liveness?.(first), 'alive');

    // A program that cannot start under the new policy refuses it, and is dead, so a signal does not reach it.
    writeFileSync(dir.join('broken'), '');
    assert.equal((await driver.restart?.(second, reset))?.kind, 'refused');
    assert.equal(await driver.liveness?.(second), 'dead');
    const stopped = await driver.reset(second, reset);
    assert.equal(stopped.kind, 'unreachable');
    assert.match(stopped.text, /NOT_RUNNING/);
    assert.deepEqual(await driver.members(), members);
  });

  it('does not report a stopped worker as notified', async () => {
    using dir = tempDir();
    await using real = await startSupervisord(dir.path);
    const driver = supervisord.create(
      { supervisord: real.socket, group: 'worker', signal: 'HUP' },
      driverContext(),
    );
    using test = testHost({ groups: { app: { driver } } });
    // A process that starts is not signalled, and `startsecs` is as long as the timeout of this group.
    for (const worker of await driver.members())
      await until(async () => (await driver.liveness?.(worker)) === 'alive');
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    const notified = await test.pull();
    assert.deepEqual([notified.outcome, notified.confirmed, notified.exitCode], ['activated', false, 0]);
    await until(() => real.lines(0).includes('HUP') && real.lines(1).includes('HUP'));

    await real.end(0);
    await real.end(1);
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    const result = await test.pull();
    assert.equal(result.outcome, 'degraded');
    assert.deepEqual([...new Set(result.problems.map((one) => one.code))], ['WORKERS_MISSING']);
    assert.deepEqual(
      result.workers.map((one) => one.state),
      ['unreachable', 'unreachable'],
    );
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
  });

  /** A host with release 1; then the process of worker 0 is killed and cannot start again. */
  async function hostWithFatalWorker(directory: string, onDead: 'report' | 'restart') {
    const real = await startSupervisord(directory);
    const options = { supervisord: real.socket, group: 'worker', signal: 'HUP' };
    const driver = supervisord.create(options, driverContext());
    // A start takes as long as `startsecs`.
    const slow = { driver: 'supervisord', options: {}, timeoutMs: 30_000, min: 0 };
    const test = testHost({ groups: { app: { driver, config: { onDead, reset: slow } } } });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    await test.pull();
    writeFileSync(join(directory, 'broken'), '');
    const pid = /^started (\d+)$/.exec(real.lines(0).find((line) => line.startsWith('started')) ?? '')?.[1];
    process.kill(Number(pid), 'SIGKILL');
    await until(async () => (await driver.failure?.('worker:worker_0'))?.text.includes('FATAL') === true);
    rmSync(join(directory, 'broken'));
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    return { real, driver, test };
  }

  it('keeps a FATAL worker critical after a newer release, and names the command that starts it', async () => {
    using dir = tempDir();
    const { real, test } = await hostWithFatalWorker(dir.path, 'report');
    await using _ = real;
    using __ = test;
    const { outcome, problems } = await test.pull();
    assert.deepEqual([outcome, problems.map(({ code }) => code)], ['degraded', ['SUPERVISOR_GAVE_UP']]);
    assert.match(problems[0]?.message ?? '', /startretries.*supervisorctl start worker:worker_0/);
    const report = { version: '', state: 'run', contact: { contact: {} }, problems: [] } as const;
    assert.equal(judgeHostHealth(statusReport(test.host, report)).level, 'critical');
  });

  it('starts a FATAL worker before its notification if onDead requires it, and no stopped one', async () => {
    using dir = tempDir();
    const { real, driver, test } = await hostWithFatalWorker(dir.path, 'restart');
    await using _ = real;
    using __ = test;
    await real.end(1);
    const { workers } = await test.pull();
    assert.deepEqual(
      workers.map(({ worker, state }) => [worker, state]),
      [
        ['worker:worker_0', 'notified'],
        ['worker:worker_1', 'unreachable'],
      ],
    );
    assert.equal(await driver.liveness?.('worker:worker_0'), 'alive');
    assert.equal(await driver.liveness?.('worker:worker_1'), 'dead');
  });
});
