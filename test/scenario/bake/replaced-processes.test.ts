// Observed time where processes are replaced between two observations, and each observation finds the release taken: only a process
// that had the release at the observation before proves that time.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settleNow } from '../../kit/agent/settle-now.js';
import { bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';

const second = 1000;
const bakeMs = 60 * second;

/**
 * Replaces a process before each observation of twice a bake time, and notifies its successor at once.
 * @param replaced the workers whose processes are replaced, one after the other
 * @returns whether the release settled, observed
 */
async function settlesObserved(names: readonly string[], replaced: readonly string[][]): Promise<boolean> {
  const driver = supervisedDriver(names, 'unrecorded');
  // More than any number of restarts here: no evidence ends the bake time.
  const bundles = [{ name: 'access', bake: { forMs: bakeMs, restarts: 99 } }];
  using host = bakingHost(driver, { bundles });
  await host.take(1);
  await host.live(20 * second);
  for (let looks = 0; looks < 60; looks += 1) {
    for (const name of replaced[looks % replaced.length] ?? []) driver.replace(name);
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
