// The driver of supervisord against the real one: what it hides behind a success, the driver does not.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { supervisord } from '../../../src/workers/drivers/supervisord.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { testHost } from '../../kit/host/test-host.js';
import { needs } from '../../kit/programs/real-programs.js';
import { startSupervisord } from '../../kit/programs/real-supervisord.js';
import { driverContext } from '../../kit/workers/driver-context.js';

const reset = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 60_000 };

describe('the real supervisord', needs('supervisord', 'supervisor'), () => {
  it('hands a signal to each of two workers, restarts them one by one, and hides nothing', async () => {
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

    // What cannot start under the new policy says no, and is dead; a signal does not reach it.
    writeFileSync(dir.join('broken'), '');
    assert.equal((await driver.restart?.(second, reset))?.kind, 'refused');
    assert.equal(await driver.liveness?.(second), 'dead');
    const stopped = await driver.reset(second, reset);
    assert.equal(stopped.kind, 'unreachable');
    assert.match(stopped.text, /NOT_RUNNING/);
    assert.deepEqual(await driver.members(), members);
  });

  it('makes no stopped worker look like one that was told', async () => {
    using dir = tempDir();
    await using real = await startSupervisord(dir.path);
    const driver = supervisord.create(
      { supervisord: real.socket, group: 'worker', signal: 'HUP' },
      driverContext(),
    );
    using test = testHost({ groups: { app: { driver } } });
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
});
