// Releases that no worker uses: one that the worker is too busy to take, one whose worker is down, one that is not active.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { unreachable } from '../../kit/workers/scripted-driver.js';

const second = 1000;

async function onSettled(): Promise<BakingHost> {
  const host = bakingHost(supervisedDriver(['a']));
  await host.take(1);
  await host.pass(bakeMs + 70 * second);
  return host;
}

describe('a release that no worker uses', () => {
  it('is not at fault for a crash of a worker that was too busy to take it, and is for the next one', async () => {
    using host = await onSettled();
    host.driver.workers.set('a', () => ({ ...unreachable(), notNow: 'yes' }));
    assert.equal((await host.take(2)).outcome, 'degraded');
    await host.pass(4 * second);
    host.driver.replace('a');
    await host.pass(4 * second);
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
    // The process that took the place of the busy one has read the release at its start.
    host.driver.replace('a');
    await host.pass(4 * second);
    assert.deepEqual([host.active(), host.restores.length], ['1', 1]);
  });

  it('settles late and unobserved where its worker is down all the time', async () => {
    using host = await onSettled();
    host.driver.workers.set('a', unreachable);
    await host.take(2);
    await host.pass(2 * bakeMs);
    assert.equal(host.test.host.ledger.read().bakes?.['access']?.serial, 2);
    await host.pass(bakeMs + 10 * second);
    const [newest] = host.test.host.ledger.read().settledReleases?.['access'] ?? [];
    assert.deepEqual([newest?.serial, newest?.isObserved], [2, false]);
  });

  it('takes no other release back where it is not active: a move that the disk did not commit', async () => {
    using host = await onSettled();
    await host.take(2);
    const bake = host.test.host.ledger.read().bakes?.['access'];
    assert.ok(bake);
    await host.pass(bakeMs + 10 * second);
    const left = { ...bake, serial: 3, startedAtMs: host.test.clock.nowMs() };
    setLedger(host.test.host.ledger, { bakes: { access: left } });
    await host.pass(4 * second);
    host.driver.replace('a');
    await host.pass(4 * second);
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
  });
});
