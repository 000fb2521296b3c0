// Observed time while processes are replaced between two observations, and each observation finds the release in use: an interval
// counts only if a process used the release at both its ends.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settleInTurn, settleNow } from '../../kit/agent/settle-now.js';
import { longCase } from '../../kit/assert/long-case.js';
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
 * @returns whether the release settled, and how much of its bake time was observed
 */
async function observe(
  names: readonly string[],
  replaced: readonly string[][],
): Promise<{ readonly isSettled: boolean; readonly observedMs: number }> {
  const driver = supervisedDriver(names, 'unrecorded');
  // More than any number of restarts here, so that no evidence ends the bake time.
  const bundles = [{ name: 'access', bake: { forMs: bakeMs, restarts: 99 } }];
  using host = bakingHost(driver, { bundles });
  await host.take(1);
  await host.live(20 * second);
  for (let observations = 0; observations < 60; observations += 1) {
    for (const name of replaced[observations % replaced.length] ?? []) driver.replace(name);
    await settleNow(host.test.host, { livenessCheck: 'all' });
    await host.pass(2 * second);
  }
  const { settledReleases, bakes } = host.test.host.ledger.read();
  const [settled] = settledReleases?.['access'] ?? [];
  return { isSettled: settled?.isObserved === true, observedMs: bakes?.['access']?.observedMs ?? bakeMs };
}

describe('observed time', () => {
  it('does not pass when each interval ends with another process than at its start', async () => {
    assert.equal((await observe(['a'], [[]])).isSettled, true);
    const { isSettled, observedMs } = await observe(['a'], [['a']]);
    assert.deepEqual(
      [isSettled, observedMs < 30 * second],
      [false, true],
      'the time before the first replacement',
    );
  });

  it('passes when some worker of the group used the release throughout each interval', longCase, async () => {
    const timeOf = async (replaced: readonly string[][]): Promise<number> =>
      (await observe(['a', 'b'], replaced)).observedMs;
    assert.ok((await timeOf([['a']])) >= bakeMs);
    assert.ok((await timeOf([['a'], ['b']])) >= bakeMs);
    assert.ok((await timeOf([['a', 'b']])) < 30 * second);
  });

  it('does not settle a release while a worker of the group is replaced continuously', longCase, async () => {
    assert.equal((await observe(['a', 'b'], [[]])).isSettled, true);
    assert.equal((await observe(['a', 'b'], [['a']])).isSettled, false);
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
  it('counts as that of a notified process when its notification preceded the observation that found it', async () => {
    const wasNotified = await isSecondNotified(async ({ host, driver }) => {
      await settleInTurn(host.test.host);
      await host.pass(4 * second);
      driver.replace('a');
      await host.pass(2 * second);
    });
    assert.equal(wasNotified, true);
  });

  it('counts as that of a notified process when its successor was found first', async () => {
    const wasNotified = await isSecondNotified(async ({ host, driver }) => {
      await host.live(4 * second);
      driver.replace('a');
      await settleInTurn(host.test.host);
      await host.pass(2 * second);
    });
    assert.equal(wasNotified, true);
  });

  it('does not count as that of a notified process when only the process before it was notified', async () => {
    const wasNotified = await isSecondNotified(async ({ host, driver }) => {
      await host.pass(2 * second);
      driver.replace('a');
      await host.pass(2 * second);
    });
    assert.equal(wasNotified, undefined);
  });
});
