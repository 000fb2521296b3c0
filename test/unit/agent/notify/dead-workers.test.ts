// Liveness of workers: which workers a move checks and for how long it waits, and which workers a restore restarts.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  markReplacedProcesses,
  recheckLiveness,
  restartDeadWorkers,
  throwIfDied,
  withLiveness,
} from '../../../../src/agent/notify/dead-workers.js';
import { type Member, readMembers } from '../../../../src/agent/notify/worker-groups.js';
import type { WorkerGroup } from '../../../../src/agent/state/host.js';
import type { WorkerResult } from '../../../../src/core/cycle/cycle-report.js';
import type { Driver } from '../../../../src/workers/contract/driver.js';
import { findDaemon } from '../../../../src/workers/shared/pid-file.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type LivingDriver, livingDriver } from '../../../kit/workers/living-workers.js';
import { confirms } from '../../../kit/workers/scripted-driver.js';

const result = (state: WorkerResult['state'], more: Partial<WorkerResult> = {}): WorkerResult => ({
  ...{ group: 'app', worker: 'a', state, text: state, generation: 2, atMs: 0 },
  ...more,
});
const target = { path: '/policy/generations/1', generation: 1 };

function groupOf(driver: Driver): WorkerGroup {
  const config = { name: 'app', uses: ['access'], onDead: 'restart' } as unknown as WorkerGroup['config'];
  return { config, driver };
}

describe('a move', () => {
  const pauses = async (state: WorkerResult['state'], driver: Driver): Promise<readonly number[]> => {
    const clock = fakeClock({ mode: 'skip' });
    await recheckLiveness([groupOf(driver)], [result(state)], {
      clock,
      signal: new AbortController().signal,
    });
    return clock.sleeps;
  };

  it('waits for the possible death of workers that were only notified, if their driver can see it', async () => {
    const driver = livingDriver({ a: confirms });
    assert.deepEqual(await pauses('notified', driver), [500]);
    assert.deepEqual(await pauses('confirmed', driver), []);
    const { liveness: _, ...blind } = driver;
    assert.deepEqual(await pauses('notified', blind), []);
  });

  it('keeps the answer of a worker that refused, although its process was replaced', async () => {
    const driver = livingDriver({ a: confirms });
    const group = groupOf({ ...driver, keepsProcess: 'yes' });
    const [member] = (await readMembers(group)) as readonly Member[];
    const now = async (state: WorkerResult['state'], process = 'another'): Promise<string[]> =>
      (await markReplacedProcesses([group], [result(state, { process })])).map((one) => one.state);
    assert.deepEqual(await now('confirmed'), ['unreachable']);
    assert.deepEqual(await now('confirmed', member?.process), ['confirmed']);
    assert.deepEqual(await now('refused'), ['refused']);
  });

  it('names the missing pid file in the text of each worker that counts as dead for that reason', async () => {
    const driver: Driver = {
      ...livingDriver({ a: confirms }),
      liveness: async () => 'dead',
      process: async () => findDaemon('/nonexistent/a.pid'),
    };
    const options = { clock: fakeClock({ mode: 'skip' }), signal: new AbortController().signal };
    const [answered] = await recheckLiveness([groupOf(driver)], [result('confirmed')], options);
    assert.match(answered?.text ?? '', /^counts as dead: there is no pid file \/nonexistent\/a\.pid: /);
    const silent = await withLiveness(driver, result('unreachable'), 'dead');
    assert.match(silent.text, /^there is no pid file \/nonexistent\/a\.pid: .*; unreachable$/);
    assert.deepEqual(await withLiveness(driver, silent, 'dead'), silent);
    assert.equal((await withLiveness(driver, result('unreachable'), 'alive')).text, 'unreachable');
  });

  it('fails for a worker that accepted and is unreachable since, and for no other change', () => {
    const died = [result('unreachable')];
    throwsCode('WORKER_DIED', () => throwIfDied([result('confirmed')], died));
    throwIfDied(died, died);
    throwIfDied([result('notified')], [result('confirmed')]);
  });
});

describe('a worker during a restore', () => {
  const back = (driver: Driver, state: WorkerResult['state']): Promise<WorkerResult[]> =>
    restartDeadWorkers([result(state)], { groups: [groupOf(driver)], target, clock: fakeClock() });
  const dead = (): LivingDriver => {
    const driver = livingDriver({ a: confirms });
    driver.dead.add('a');
    return driver;
  };

  it('is restarted if it is dead', async () => {
    const driver = dead();
    const [after] = await back(driver, 'unreachable');
    assert.deepEqual([after?.state, driver.notified], ['notified', ['restart a 1']]);
  });

  it('is not restarted if it is alive and was not reached', async () => {
    const driver = livingDriver({ a: confirms });
    const [after] = await back(driver, 'unreachable');
    assert.deepEqual([after?.state, driver.notified], ['unreachable', []]);
  });

  it('is not restarted by a driver that cannot restart', async () => {
    const { restart: _, ...driver } = dead();
    assert.equal((await back(driver, 'unreachable'))[0]?.text, 'unreachable');
    await rejectsCode('WORKER_REFUSED', back(driver, 'refused'));
  });
});
