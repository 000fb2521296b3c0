// A worker that loaded a release and then stopped: the bake time of the release stops until a worker uses it again.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { setLedger } from '../../kit/host/set-ledger.js';

const second = 1000;

interface Scene extends Disposable {
  readonly host: BakingHost;
  readonly stop: () => void;
  readonly start: () => void;
  readonly bake: () => { readonly serial?: number; readonly observedMs?: number };
}

/** Release 1 has settled, and release 2 was activated 10 s ago. */
async function onTwo(min: number): Promise<Scene> {
  const supervised = supervisedDriver(['a']);
  let isStopped = false;
  const driver = Object.assign(supervised, {
    liveness: async () => (isStopped ? ('dead' as const) : ('alive' as const)),
  });
  const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min };
  const host = bakingHost(driver, { groups: { app: { config: { reset } } } });
  await host.take(1);
  await host.pass(bakeMs + 70 * second);
  await host.take(2);
  await host.pass(10 * second);
  return {
    host,
    stop: () => {
      isStopped = true;
      driver.processes.delete('a');
    },
    start: () => {
      isStopped = false;
      driver.replace('a', 'clean');
    },
    bake: () => host.test.host.ledger.read().bakes?.['access'] ?? {},
    [Symbol.dispose]: () => host[Symbol.dispose](),
  };
}

describe('a release with a worker that stops after its load', () => {
  it('does not settle until the worker has run with it for the rest of its bake time', async () => {
    using scene = await onTwo(1);
    const { host } = scene;
    scene.stop();
    await host.pass(4 * bakeMs);
    assert.deepEqual([scene.bake().serial, (scene.bake().observedMs ?? 0) <= 10 * second], [2, true]);
    scene.start();
    await host.live(bakeMs - 20 * second);
    assert.equal(scene.bake().serial, 2);
    await host.live(30 * second);
    assert.deepEqual([scene.bake().serial, host.active()], [undefined, '2']);
  });

  it('is rolled back when the worker crashes after its start', longCase, async () => {
    using scene = await onTwo(1);
    scene.stop();
    await scene.host.pass(2 * bakeMs);
    scene.start();
    await scene.host.pass(20 * second);
    scene.host.driver.replace('a');
    await scene.host.pass(4 * second);
    assert.deepEqual([scene.host.active(), scene.host.restores.length], ['1', 1]);
  });

  it('does not settle in a group that may be empty and has a member', longCase, async () => {
    using scene = await onTwo(0);
    scene.stop();
    await scene.host.pass(4 * bakeMs);
    assert.deepEqual([scene.bake().serial, scene.host.active()], [2, '2']);
  });

  it('does not settle while the worker does not answer a later notification', async () => {
    using scene = await onTwo(1);
    const { ledger } = scene.host.test.host;
    const [[key, worker] = ['', undefined]] = Object.entries(ledger.read().workers);
    assert.ok(worker);
    setLedger(ledger, { workers: { [key]: { ...worker, state: 'unreachable' } } });
    await scene.host.pass(4 * bakeMs);
    assert.equal(scene.bake().serial, 2);
    setLedger(ledger, { workers: { [key]: worker } });
    await scene.host.pass(bakeMs);
    assert.equal(scene.bake().serial, undefined);
  });

  it(
    'counts only the time until the stop, also without a recorded observation in between',
    longCase,
    async () => {
      using scene = await onTwo(1);
      await scene.host.pass(16 * second);
      scene.stop();
      await scene.host.pass(2 * second);
      scene.start();
      await scene.host.live(64 * second);
      const { observedMs = 0 } = scene.bake();
      const observedAtMs = 92 * second;
      assert.ok(
        observedMs <= observedAtMs - 4 * second && observedMs >= observedAtMs - 40 * second,
        `${observedMs} ms`,
      );
    },
  );
});
