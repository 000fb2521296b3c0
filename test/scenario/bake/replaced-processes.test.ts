// Observed time where processes are replaced between two observations, and each observation finds the release taken: only a process
// that had the release at the observation before proves that time.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settleInTurn, settleNow } from '../../kit/agent/settle-now.js';
import {
  type BakingHost,
  bakingHost,
  type SupervisedDriver,
  supervisedDriver,
} from '../../kit/host/baking-host.js';

const second = 1000;
const bakeMs = 60 * second;

/**
 * Replaces a process before each observation of twice a bake time, and notifies its successor at once.
 * @param replaced the workers that get another process, one list after the other
 * @returns whether the release settled, observed
 */
async function settlesObserved(names: readonly string[], replaced: readonly string[][]): Promise<boolean> {
  const driver = supervisedDriver(names, 'unrecorded');
  // More than any number of restarts here: no evidence ends the bake time.
  const bundles = [{ name: 'access', bake: { forMs: bakeMs, restarts: 99 } }];
  using host = bakingHost(driver, { bundles });
  await host.take(1);
  await host.live(20 * second);
  for (let observations = 0; observations < 60; observations += 1) {
    for (const name of replaced[observations % replaced.length] ?? []) driver.replace(name);
    await settleNow(host.test.host, { doubt: 'the-answered' });
    await host.pass(2 * second);
  }
  const [settled] = host.test.host.ledger.read().settledReleases?.['access'] ?? [];
  return settled?.isObserved === true;
}

describe('observed time', () => {
  it('does not pass where each interval ends with another process than it began with', async () => {
    assert.equal(await settlesObserved(['a'], [[]]), true);
    assert.equal(await settlesObserved(['a'], [['a']]), false);
  });

  it('passes where some worker of the group had the release throughout each interval', async () => {
    assert.equal(await settlesObserved(['a', 'b'], [['a']]), true);
    assert.equal(await settlesObserved(['a', 'b'], [['a'], ['b']]), true);
    assert.equal(await settlesObserved(['a', 'b'], [['a', 'b']]), false);
  });
});

/** @returns whether the second process that ended in the bake time of release 2 counts as notified */
async function isSecondNotified(
  observe: (scene: { readonly host: BakingHost; readonly driver: SupervisedDriver }) => Promise<void>,
): Promise<boolean | undefined> {
  const driver = supervisedDriver(['a'], 'unrecorded');
  using host = bakingHost(driver, { bundles: [{ name: 'access', bake: { forMs: bakeMs, restarts: 99 } }] });
  await host.take(1);
  await host.live(20 * second);
  await host.pass(bakeMs);
  await host.take(2);
  await host.live(20 * second);
  driver.replace('a');
  await observe({ host, driver });
  const { ends = [] } = host.test.host.ledger.read().runs?.['app/a'] ?? {};
  assert.equal(ends.length, 2);
  return ends[1]?.wasNotified;
}

describe('the end of the second process in a bake time', () => {
  it('is that of a notified one where the notification came before the observation that found it', async () => {
    const wasNotified = await isSecondNotified(async ({ host, driver }) => {
      await settleInTurn(host.test.host);
      await host.pass(4 * second);
      driver.replace('a');
      await host.pass(2 * second);
    });
    assert.equal(wasNotified, true);
  });

  it('is that of a notified one where its successor was found first', async () => {
    const wasNotified = await isSecondNotified(async ({ host, driver }) => {
      await host.live(4 * second);
      driver.replace('a');
      await settleInTurn(host.test.host);
      await host.pass(2 * second);
    });
    assert.equal(wasNotified, true);
  });

  it('is not that of a notified one where only the process before it was notified', async () => {
    const wasNotified = await isSecondNotified(async ({ host, driver }) => {
      await host.pass(2 * second);
      driver.replace('a');
      await host.pass(2 * second);
    });
    assert.equal(wasNotified, undefined);
  });
});
