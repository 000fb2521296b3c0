// Releases that no worker uses: the worker is too busy to load it, the worker is down, or the release is not active.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { confirms, unreachable } from '../../kit/workers/scripted-driver.js';

const second = 1000;

async function onSettled(): Promise<BakingHost> {
  const host = bakingHost(supervisedDriver(['a']));
  await host.take(1);
  await host.pass(bakeMs + 70 * second);
  return host;
}

describe('a release that no worker uses', () => {
  it('is not at fault for a crash of a worker that was too busy to load it, and is at fault for the next crash', async () => {
    using host = await onSettled();
    host.driver.workers.set('a', () => ({ ...unreachable(), notNow: 'yes' }));
    assert.equal((await host.take(2)).outcome, 'degraded');
    await host.pass(4 * second);
    host.driver.replace('a');
    await host.pass(4 * second);
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
    // The process that replaced the busy one has read the release at its start.
    host.driver.replace('a');
    await host.pass(4 * second);
    assert.deepEqual([host.active(), host.restores.length], ['1', 1]);
  });

  it('does not settle while its worker is down, and has its full bake time once the worker has loaded it', async () => {
    using host = await onSettled();
    host.driver.workers.set('a', unreachable);
    await host.take(2);
    await host.pass(4 * bakeMs);
    const bakeOf = () => host.test.host.ledger.read().bakes?.['access'];
    assert.deepEqual([bakeOf()?.serial, bakeOf()?.observedMs], [2, 0]);
    const { bundles } = statusReport(host.test.host, {
      ...{ version: '', state: 'run', contact: { contact: {} }, problems: [] },
    });
    assert.deepEqual([bundles[0]?.bake?.state, bundles[0]?.bake?.untaken], ['baking', true]);
    assert.deepEqual(bundles[0]?.bake?.waitsFor, { what: 'worker', of: ['app'] });
    host.driver.workers.set('a', confirms);
    await host.test.pull();
    await host.pass(bakeMs / 2);
    assert.equal(bakeOf()?.serial, 2, 'half of its bake time');
    host.driver.replace('a');
    await host.pass(4 * second);
    assert.deepEqual([host.active(), host.restores.length], ['1', 1]);
  });

  it('is observed once a minute while its worker is down for long, and each 2 s once it is loaded', async () => {
    using host = await onSettled();
    host.driver.workers.set('a', unreachable);
    await host.take(2);
    await host.pass(60 * second);
    assert.equal(await host.observe(), 2 * second, 'a daemon that is started soon');
    await host.pass(bakeMs);
    assert.equal(await host.observe(), 60 * second);
    host.driver.workers.set('a', confirms);
    await host.test.pull();
    await host.test.clock.advance(60 * second);
    assert.equal(await host.observe(), 2 * second);
    const { observedMs } = host.test.host.ledger.read().bakes?.['access'] ?? {};
    assert.equal(observedMs, 0, 'the time of the load within the minute is unknown');
    await host.pass(bakeMs);
    assert.equal(await host.observe(), 60 * second, 'settled');
  });

  it('does not settle when its group never had a member', longCase, async () => {
    const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 1 };
    using host = bakingHost(supervisedDriver([]), { groups: { app: { config: { reset } } } });
    await host.take(1);
    await host.pass(4 * bakeMs);
    assert.equal(host.test.host.ledger.read().bakes?.['access']?.observedMs, 0);
  });

  it('settles when its group may be empty', async () => {
    using host = bakingHost(supervisedDriver([]));
    await host.take(1);
    await host.pass(bakeMs + 4 * second);
    assert.equal(host.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial, 1);
  });

  it('causes no rollback of another release when it is not active, because the disk did not commit its move', async () => {
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
