import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { supervisord } from '../../src/workers/supervisord.js';
import { driverContext } from '../support/driver-context.js';
import { needs } from '../support/real-programs.js';
import { startSupervisord } from '../support/real-supervisord.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

const reset = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 20_000 };

describe('the real supervisord', needs('supervisord', 'supervisor'), () => {
  it('hands a signal to each of two workers, restarts them one by one, and hides nothing', async () => {
    using dir = tempDir();
    await using real = await startSupervisord(dir.path);
    const options = { supervisord: real.socket, group: 'worker', signal: 'HUP' };
    const driver = supervisord.create(options, driverContext());
    const members = await driver.members();
    assert.deepEqual(members, ['worker:worker_0', 'worker:worker_1']);

    for (const worker of members) assert.equal((await driver.reset(worker, reset)).kind, 'told');
    await until(() => real.lines(0).includes('HUP') && real.lines(1).includes('HUP'));
    assert.equal(real.lines(0).filter((line) => line.startsWith('started')).length, 1);

    const [first = '', second = ''] = members;
    assert.deepEqual(await driver.restart?.(first, reset), {
      kind: 'told',
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
});
