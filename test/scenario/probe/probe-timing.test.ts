// The time that a move waits for a probe, on a complete host in virtual time: a slow daemon passes, and a daemon that returns
// to its old policy is a failure.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { ProbeConfig } from '../../../src/core/config/config.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

/** Ends with the next exit code of a list, and with its last one from then on; counts its attempts. */
const script = `
n=$(cat "$1/count" 2> /dev/null || echo 0); echo $((n + 1)) > "$1/count"
set -- $(cat "$1/answers"); test $n -lt $# || n=$(($# - 1)); shift $n; exit $1`;

function answers(dir: TempDir, codes: readonly number[]): void {
  writeFileSync(dir.join('count'), '0');
  writeFileSync(dir.join('answers'), codes.join(' '));
}
const attempts = (dir: TempDir): number => Number(readFileSync(dir.join('count'), 'utf8'));
const times = (count: number, code: number): number[] => Array.from({ length: count }, () => code);

/** A host with release 1 in use, and release 2 published. */
async function scene(
  dir: TempDir,
  { driver = scriptedDriver({ a: confirms }), ...more }: Partial<ProbeConfig> & { driver?: ScriptedDriver },
): Promise<TestHost> {
  answers(dir, [0]);
  const run = ['sh', '-c', script, 'sh', dir.path] as const;
  const probe: ProbeConfig = { run, timeoutMs: 10_000, sandbox: 'off', ...more };
  const test = testHost({ groups: { ns: { driver, config: { probe } } } });
  await test.publish('access', { 'policy.yaml': 'v1' }, { serial: 1 });
  assert.equal((await test.pull()).outcome, 'activated');
  await test.publish('access', { 'policy.yaml': 'v2' }, { serial: 2 });
  return test;
}

describe('a move', longCase, () => {
  it('accepts a daemon that shows its old policy for 20 s', async () => {
    using dir = tempDir();
    using test = await scene(dir, {});
    answers(dir, [...times(20, 1), 0]);
    const { outcome, confirmed } = await test.pull();
    assert.deepEqual([outcome, confirmed, attempts(dir)], ['activated', true, 21]);
  });

  for (const retry of [0, 3]) {
    it(`restores the release before when the daemon is silent first and then shows the old policy, with retry: ${retry}`, async () => {
      using dir = tempDir();
      using test = await scene(dir, { retry });
      answers(dir, [...times(6, 75), ...times(1 + retry, 1), 0]);
      const { outcome, problems } = await test.pull();
      assert.deepEqual([outcome, problems[0]?.code], ['rolled-back', 'PROBE_FAILED']);
    });
  }

  it('restores the release before at the deadline without retry, and not earlier', async () => {
    using dir = tempDir();
    using test = await scene(dir, {});
    answers(dir, [...times(10, 75), ...times(50, 1), 0]);
    const beganMs = test.clock.nowMs();
    const { outcome } = await test.pull();
    assert.equal(outcome, 'rolled-back');
    assert.ok(test.clock.nowMs() - beganMs >= 59_000);
  });

  it('keeps a release when the daemon is silent until the deadline, with a warning', async () => {
    using dir = tempDir();
    using test = await scene(dir, { retry: 0 });
    answers(dir, [75]);
    const { outcome, warnings } = await test.pull();
    assert.deepEqual([outcome, warnings[0]?.code, attempts(dir)], ['activated', 'PROBE_SILENT', 60]);
  });

  it('does not wait for the deadline when the worker is dead', async () => {
    using dir = tempDir();
    const driver = scriptedDriver({ a: confirms });
    let generation = 0;
    driver.workers.set('a', (to) => {
      generation = to;
      return confirms(to);
    });
    driver.liveness = async () => (generation === 2 ? 'dead' : 'alive');
    using test = await scene(dir, { driver });
    answers(dir, [...times(6, 75), 0]);
    const beganMs = test.clock.nowMs();
    const { outcome, problems } = await test.pull();
    assert.deepEqual([outcome, problems[0]?.code], ['rolled-back', 'WORKER_DIED']);
    assert.ok(test.clock.nowMs() - beganMs < 10_000);
  });
});
