// A worker that runs and answers nothing since a release: a policy must not be able to hide its refusal in this way.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import type { Liveness } from '../../../src/workers/contract/driver.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, scriptedDriver, unreachable } from '../../kit/workers/scripted-driver.js';

const timeoutMs = 10_000;

/** Generation 2 is active, and its worker could not be reached. */
async function scene(liveness: Liveness): Promise<TestHost> {
  const driver = scriptedDriver({ a: confirms });
  let now: Liveness = 'alive';
  driver.liveness = async () => now;
  const reset = { driver: 'scripted', options: {}, timeoutMs, min: 1 };
  const test = testHost({ groups: { ns: { driver, config: { reset } } } });
  const publish = (serial: number) => test.publish('access', { 'policy.yaml': `v${serial}` }, { serial });
  await publish(1);
  await test.pull();
  driver.workers.set('a', unreachable);
  now = liveness;
  await publish(2);
  await test.pull();
  return test;
}

const levels = ({ host }: TestHost) =>
  judgeHostHealth(
    statusReport(host, { version: '', state: 'run', contact: { contact: {} }, problems: [] }),
  ).findings.map(({ level, code }) => `${level} ${code}`);

describe('a running worker that cannot be reached since a release', () => {
  it('is lost after three times its timeout, which is critical, and degrades the pull', async () => {
    using test = await scene('alive');
    assert.deepEqual(levels(test), ['warning WORKER_UNREACHABLE']);
    await test.clock.advance(3 * timeoutMs - 1);
    assert.deepEqual(levels(test), ['warning WORKER_UNREACHABLE']);
    await test.clock.advance(1);
    assert.deepEqual(levels(test), ['critical WORKER_LOST_AFTER']);
    const pull = await test.pull();
    assert.deepEqual([pull.exitCode, pull.problems[0]?.code], [4, 'WORKER_LOST_AFTER']);
  });

  it('is only unreachable if its liveness is unknown', async () => {
    using test = await scene('unknown');
    await test.clock.advance(10 * timeoutMs);
    assert.deepEqual(levels(test), ['warning WORKER_UNREACHABLE']);
  });

  it('is critical at once if all workers of its group are dead', async () => {
    using test = await scene('dead');
    assert.deepEqual(levels(test), ['critical WORKERS_MISSING']);
  });

  it('causes no alarm if a worker that never ran is dead', async () => {
    const driver = scriptedDriver({ a: unreachable });
    driver.liveness = async () => 'dead';
    using test = testHost({ groups: { ns: { driver } } });
    await test.publish('access', { 'policy.yaml': 'v1' }, { serial: 1 });
    await test.pull();
    assert.deepEqual(levels(test), ['warning WORKER_UNREACHABLE']);
  });
});
