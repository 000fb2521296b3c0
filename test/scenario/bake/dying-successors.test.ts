// The process of a daemon dies some time after each notification, and its supervisor restarts it: the notifications of Writ must not
// keep it in this loop.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settleInTurn } from '../../kit/agent/settle-now.js';
import { longCase } from '../../kit/assert/long-case.js';
import { bakeMs, bakingHost, type SupervisedDriver, supervisedDriver } from '../../kit/host/baking-host.js';
import type { TestHost } from '../../kit/host/test-host.js';

const second = 1000;
const diesAfterMs = 20 * second;

interface Dying {
  /** Passes time with the rounds of an agent; the daemon dies 20 s after each notification. @returns the number of its deaths */
  live(forMs: number): Promise<number>;
}

function dying(driver: SupervisedDriver, test: TestHost, pass: (forMs: number) => Promise<void>): Dying {
  let diesAtMs = Number.POSITIVE_INFINITY;
  driver.workers.set('a', () => {
    diesAtMs = test.clock.nowMs() + diesAfterMs;
    return { kind: 'notified', text: 'RELOADING' };
  });
  return {
    live: async (forMs) => {
      let deaths = 0;
      const endMs = test.clock.nowMs() + forMs;
      while (test.clock.nowMs() < endMs) {
        await pass(4 * second);
        await settleInTurn(test.host);
        if (test.clock.nowMs() < diesAtMs) continue;
        diesAtMs = Number.POSITIVE_INFINITY;
        deaths += 1;
        driver.replace('a');
      }
      return deaths;
    },
  };
}

describe('a daemon that dies 20 s after each notification', longCase, () => {
  it('dies a few times in 20 minutes, and not after each restart by its supervisor', async () => {
    const driver = supervisedDriver(['a'], 'unrecorded');
    using baking = bakingHost(driver, { bundles: [{ name: 'access', bake: { forMs: 0, restarts: 2 } }] });
    await baking.take(1);
    await baking.pass(bakeMs);
    const { live } = dying(driver, baking.test, baking.pass);
    await baking.take(2);
    const deaths = await live(20 * 60 * second);
    assert.ok(deaths >= 4 && deaths <= 10, `${deaths} deaths, of 60 that would be possible`);
    assert.equal(baking.test.host.ledger.read().workers['app/a']?.appeared, true);
  });

  it('is notified at growing intervals in the bake time of a release, which stays and does not settle', async () => {
    const driver = supervisedDriver(['a'], 'unrecorded');
    using baking = bakingHost(driver);
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    const { live } = dying(driver, baking.test, baking.pass);
    await baking.take(2);
    const deaths = await live(bakeMs - 20 * second);
    assert.deepEqual([deaths, baking.active(), baking.restores.length], [5, '2', 0]);
    await live(bakeMs);
    assert.equal(baking.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial, 1);
  });

  it('is notified at once on request of an operator', async () => {
    const driver = supervisedDriver(['a'], 'unrecorded');
    using baking = bakingHost(driver, { bundles: [{ name: 'access', bake: { forMs: 0, restarts: 2 } }] });
    await baking.take(1);
    await baking.pass(bakeMs);
    const { live } = dying(driver, baking.test, baking.pass);
    await baking.take(2);
    await live(10 * 60 * second);
    const before = driver.notified.length;
    await baking.test.pull();
    assert.equal(driver.notified.length, before + 1);
  });
});
