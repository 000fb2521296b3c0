// After a restore one right answer of a probe confirms nothing: a daemon that lost the notification shows its old state first,
// and the refused policy some seconds later.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { createProber } from '../../../src/agent/daemon/probe-loop.js';
import { exclusiveAlone } from '../../../src/agent/job/exclusive.js';
import { workerFindings } from '../../../src/agent/notify/pending-problems.js';
import type { WorkerLedger } from '../../../src/agent/state/ledger.js';
import type { ProbeConfig } from '../../../src/core/config/config.js';
import { settle } from '../../kit/agent/settled-world.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

/** With `refuse` in the file `answer` the probe refuses generation 2; otherwise it exits with the code in the file. */
const script =
  'code=$(cat "$1/answer"); test "$code" = refuse || exit $code; grep -q v2 "$2/access/policy.yaml" && exit 1; exit 0';

interface Scene {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  readonly setAnswer: (what: 'refuse' | number) => void;
  readonly worker: () => WorkerLedger | undefined;
  /** @returns seconds until the agent ran the probe again */
  readonly askOnce: () => Promise<number>;
  readonly levels: () => string[];
}

async function scene(dir: TempDir): Promise<Scene> {
  const driver = scriptedDriver({ a: confirms });
  const setAnswer = (what: 'refuse' | number): void => writeFileSync(dir.join('answer'), String(what));
  setAnswer('refuse');
  const run = ['sh', '-c', script, 'sh', dir.path, '{current}'] as const;
  const probe: ProbeConfig = { run, timeoutMs: 10_000, sandbox: 'off', retry: 0 };
  const bundles = [{ name: 'access', bake: { forMs: 0, restarts: 2 } }];
  const test = testHost({ bundles, groups: { ns: { driver, config: { probe } } } });
  await test.publish('access', { 'policy.yaml': 'v1' }, { serial: 1 });
  assert.equal((await test.pull()).confirmed, true);
  return {
    ...{ test, driver, setAnswer },
    worker: () => test.host.ledger.read().workers['ns/a'],
    levels: () => workerFindings(test.host).map(({ code, level }) => `${level} ${code}`),
    askOnce: async () => {
      const stop = new AbortController();
      const beganMs = test.clock.nowMs();
      const onAsked = (): void => stop.abort();
      const options = { installId: 'test', exclusive: exclusiveAlone, stop: stop.signal, onAsked };
      await createProber({ host: () => test.host, ...options }).run();
      return (test.clock.nowMs() - beganMs) / 1000;
    },
  };
}

async function refused({ test }: Scene): Promise<void> {
  await test.publish('access', { 'policy.yaml': 'v2' }, { serial: 2 });
  const { outcome, confirmed, workers } = await test.pull();
  assert.deepEqual([outcome, confirmed, workers[0]?.state], ['rolled-back', false, 'notified']);
}

describe('a worker after a restore', () => {
  it('is notified, and confirmed by a second right answer 30 s later', async () => {
    using dir = tempDir();
    const one = await scene(dir);
    using _ = one.test;
    await refused(one);
    assert.match(one.worker()?.text ?? '', /its probe is asked again from .*, by a pull if no agent runs/);
    assert.deepEqual(one.levels(), ['warning WORKER_UNCONFIRMED']);
    assert.ok((await one.askOnce()) >= 30);
    assert.deepEqual([one.worker()?.state, one.worker()?.secondProbe], ['confirmed', undefined]);
    assert.deepEqual(one.levels(), []);
  });

  it('is notified again when the second answer is wrong, and confirmed by the next right one', async () => {
    using dir = tempDir();
    const one = await scene(dir);
    using _ = one.test;
    await refused(one);
    const { length } = one.driver.notified;
    one.setAnswer(1);
    await one.askOnce();
    assert.equal(one.worker()?.state, 'pending');
    one.setAnswer(0);
    await settle(one.test.host, { ignoreBackoff: false });
    assert.deepEqual([one.driver.notified.length, one.worker()?.state], [length + 1, 'notified']);
    await one.askOnce();
    assert.equal(one.worker()?.state, 'confirmed');
  });

  it('is a critical finding when the next answer is wrong too', async () => {
    using dir = tempDir();
    const one = await scene(dir);
    using _ = one.test;
    await refused(one);
    one.setAnswer(1);
    await one.askOnce();
    assert.deepEqual(one.levels(), ['warning PROBE_CHANGED']);
    one.setAnswer(0);
    await settle(one.test.host, { ignoreBackoff: false });
    one.setAnswer(1);
    await one.askOnce();
    assert.deepEqual(one.levels(), ['critical PROBE_CHANGED']);
  });

  it('stays notified while its probe is silent, and is probed again', async () => {
    using dir = tempDir();
    const one = await scene(dir);
    using _ = one.test;
    await refused(one);
    one.setAnswer(75);
    await one.askOnce();
    assert.equal(one.worker()?.state, 'notified');
    one.setAnswer(0);
    assert.ok((await one.askOnce()) >= 30);
    assert.equal(one.worker()?.state, 'confirmed');
  });

  it('is not confirmed by a pull before 30 s, and is confirmed by a later one, without an agent', async () => {
    using dir = tempDir();
    const one = await scene(dir);
    using _ = one.test;
    await refused(one);
    await one.test.pull();
    assert.equal(one.worker()?.state, 'notified');
    await one.test.clock.advance(30_000);
    await one.test.pull();
    assert.equal(one.worker()?.state, 'confirmed');
  });
});

describe('a worker after a rollback by an operator', () => {
  it('is notified until the second right answer, with exit code 4', async () => {
    using dir = tempDir();
    const one = await scene(dir);
    using _ = one.test;
    one.setAnswer(0);
    await one.test.publish('access', { 'policy.yaml': 'v2' }, { serial: 2 });
    assert.equal((await one.test.pull()).confirmed, true);
    const { signal } = new AbortController();
    const { result } = await rollBack(one.test.host, { by: 'anna', signal });
    assert.deepEqual([result.outcome, result.exitCode, one.worker()?.state], ['activated', 4, 'notified']);
    await one.askOnce();
    assert.equal(one.worker()?.state, 'confirmed');
  });
});
