// A worker that is restarted several times within a bake time: each of its processes is notified, and a process without a
// notification settles no release.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import {
  type BakingHost,
  bakeMs,
  bakingHost,
  type SupervisedDriver,
  supervisedDriver,
} from '../../kit/host/baking-host.js';
import { confirms } from '../../kit/workers/scripted-driver.js';

const second = 1000;

interface Scene extends Disposable {
  readonly host: BakingHost;
  readonly driver: SupervisedDriver;
  settled(): { readonly serial: number; readonly isObserved: boolean } | undefined;
}

/** Release 1 has settled, and release 2 was activated 20 s ago. */
async function onTwo(names: readonly string[] = ['a']): Promise<Scene> {
  const driver = supervisedDriver(names, 'unrecorded');
  const host = bakingHost(driver);
  await host.take(1);
  await host.pass(bakeMs + 10 * second);
  await host.take(2);
  // A process that appears within 15 s of a notification counts as its result.
  await host.live(20 * second);
  return {
    ...{ host, driver },
    settled: () => host.test.host.ledger.read().settledReleases?.['access']?.[0],
    [Symbol.dispose]: () => host[Symbol.dispose](),
  };
}

/** Replaces the process of `a` twice: observed time stops until its third process is notified. */
async function assertNoTimePasses({ host, driver }: Scene): Promise<void> {
  const observedMs = () => host.test.host.ledger.read().bakes?.['access']?.observedMs ?? bakeMs;
  driver.replace('a');
  await host.live(20 * second);
  driver.replace('a');
  await host.live(4 * second);
  const before = observedMs();
  await host.live(52 * second);
  assert.equal(observedMs(), before);
  await host.live(40 * second);
  assert.ok(observedMs() > before);
}

describe('a worker that a person restarts twice within a bake time', () => {
  it('is notified of the release again, and its refusal causes a rollback', async () => {
    using scene = await onTwo();
    const { driver, host } = scene;
    driver.replace('a');
    await scene.host.live(20 * second);
    driver.replace('a');
    driver.workers.set('a', (generation) =>
      generation === 2 ? { kind: 'refused', text: 'cannot load' } : confirms(generation),
    );
    const before = driver.notified.length;
    await scene.host.live(40 * second);
    assert.equal(driver.notified.length, before, 'a tenth of the bake time has not passed');
    await scene.host.live(40 * second);
    assert.deepEqual([host.active(), host.restores.length], ['1', 1]);
    assert.equal(scene.settled()?.serial, 1);
  });

  it('stops its bake time until its third process is notified', longCase, async () => {
    using scene = await onTwo();
    await assertNoTimePasses(scene);
    await scene.host.live(bakeMs);
    assert.deepEqual([scene.settled()?.serial, scene.settled()?.isObserved], [2, true]);
  });

  it(
    'settles the release a third of the bake time after a replacement just before its end',
    longCase,
    async () => {
      using scene = await onTwo();
      const { host, driver } = scene;
      await scene.host.live(bakeMs - 24 * second);
      driver.replace('a');
      await host.pass(60 * second);
      assert.equal(scene.settled()?.serial, 1, 'the successor is not notified yet');
      await scene.host.live(120 * second);
      assert.equal(
        scene.settled()?.serial,
        1,
        'its successor has run for less than a third of the bake time',
      );
      await scene.host.live(30 * second);
      assert.deepEqual([scene.settled()?.serial, scene.settled()?.isObserved], [2, true]);
    },
  );
});

describe('a group of two workers in a bake time', () => {
  it('stops its bake time while the successor of one of them is not notified', async () => {
    using scene = await onTwo(['a', 'b']);
    await assertNoTimePasses(scene);
  });
});
