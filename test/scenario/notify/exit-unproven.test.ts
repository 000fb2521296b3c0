// The exit code of an activation that no worker confirmed: 4, because a script would otherwise continue as if it were done.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import type { ProbeConfig, WorkerGroupConfig } from '../../../src/core/config/config.js';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const notified = (): Answer => ({ kind: 'notified', text: 'signal sent' });

function scene(config: Partial<WorkerGroupConfig> = {}, answer: (to: number) => Answer = notified): TestHost {
  return testHost({ groups: { ns: { driver: scriptedDriver({ a: answer }), config } } });
}

const release = (test: TestHost, serial: number): Promise<unknown> =>
  test.publish('access', { 'policy.yaml': `v${serial}` }, { serial });

function probeIn(dir: TempDir): ProbeConfig {
  return { run: ['sh', '-c', `exit $(cat ${dir.join('exit-code')})`], timeoutMs: 10_000, sandbox: 'off' };
}
const setExitCode = (dir: TempDir, code: number): void => writeFileSync(dir.join('exit-code'), String(code));

/** @returns outcome and exit code of the pull of the next release */
async function pullNext(test: TestHost, serial: number): Promise<unknown[]> {
  await release(test, serial);
  const { outcome, exitCode, confirmed } = await test.pull();
  return [outcome, exitCode, confirmed];
}

describe('the exit code of a pull', () => {
  it('is 0 for a first policy that no worker confirmed', async () => {
    using test = scene();
    assert.deepEqual(await pullNext(test, 1), ['activated', 0, false]);
  });

  it('is 4 if a notified worker did not confirm a policy that replaced another one', async () => {
    using test = scene();
    await pullNext(test, 1);
    assert.deepEqual(await pullNext(test, 2), ['activated', 4, false]);
    assert.equal((await test.pull()).exitCode, 0);
  });

  it('is 4 if the probe gave no verdict', longCase, async () => {
    using dir = tempDir();
    using test = scene({ probe: probeIn(dir) });
    setExitCode(dir, 0);
    assert.deepEqual(await pullNext(test, 1), ['activated', 0, true]);
    setExitCode(dir, 75);
    assert.deepEqual(await pullNext(test, 2), ['activated', 4, false]);
    setExitCode(dir, 0);
    assert.deepEqual(await pullNext(test, 3), ['activated', 0, true]);
  });

  it('is 0 if the group accepts unconfirmed workers', async () => {
    using test = scene({ confirm: 'accept' });
    await pullNext(test, 1);
    assert.deepEqual(await pullNext(test, 2), ['activated', 0, false]);
  });

  it('is 0 if the worker confirmed the policy', async () => {
    using test = scene({}, confirms);
    await pullNext(test, 1);
    assert.deepEqual(await pullNext(test, 2), ['activated', 0, true]);
  });

  it('is 4 if only one of two groups accepts unconfirmed workers', async () => {
    using test = testHost({
      groups: {
        accepting: { driver: scriptedDriver({ a: notified }), config: { confirm: 'accept' } },
        ns: { driver: scriptedDriver({ a: notified }) },
      },
    });
    await pullNext(test, 1);
    assert.deepEqual(await pullNext(test, 2), ['activated', 4, false]);
  });
});

describe('the exit code of a rollback', () => {
  it('is 4 if no worker confirmed the older policy', async () => {
    using test = scene();
    await pullNext(test, 1);
    await pullNext(test, 2);
    const { signal } = new AbortController();
    const { result } = await rollBack(test.host, { by: 'anna', signal });
    assert.deepEqual([result.outcome, result.exitCode], ['activated', 4]);
  });
});
