// A worker with processes that exit by themselves with any release; its supervisor replaces them without a record.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settleInTurn } from '../../kit/agent/settle-now.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';

const second = 1000;

describe('a worker with processes that exit every few seconds', () => {
  it('is observed every 2 s in the first two minutes of an agent, and then once a minute', async () => {
    const driver = supervisedDriver(['a'], 'unrecorded');
    using host = bakingHost(driver, { bundles: [{ name: 'access', bake: { forMs: 0, restarts: 2 } }] });
    await host.take(1);
    for (let count = 0; count < 5; count += 1) {
      await host.pass(10 * second);
      driver.replace('a');
    }
    await host.pass(2 * second);
    assert.equal(await host.observe(), 2 * second);
    assert.equal(host.test.host.ledger.read().runs?.['app/a']?.ends.length, 5);
    await host.pass(15 * 60 * second);
    assert.equal(await host.observe(), 60 * second);
  });

  it(
    'keeps a release, which settles, when they exited at a similar rate before the swap',
    longCase,
    async () => {
      const driver = supervisedDriver(['a'], 'unrecorded');
      using host = bakingHost(driver);
      const recycle = async (times: number, everyMs: number): Promise<void> => {
        for (let count = 0; count < times; count += 1) {
          await host.live(everyMs);
          driver.replace('a');
        }
      };
      await host.take(1);
      await host.pass(bakeMs + 10 * second);
      await recycle(30, 24 * second);
      await host.take(2);
      await recycle(80, 16 * second);
      assert.deepEqual([host.active(), host.restores.length, settledSerial(host)], ['2', 0, 2]);
    },
  );

  it('is notified again, also where its members are read before its processes are observed, until a release settles', async () => {
    const driver = supervisedDriver(['a'], 'unrecorded');
    using host = bakingHost(driver, { bundles: [{ name: 'access', bake: { forMs: 30_000, restarts: 2 } }] });
    const recycle = async (times: number): Promise<void> => {
      for (let count = 0; count < times; count += 1) {
        await settleInTurn(host.test.host);
        await host.live(8 * second);
        driver.replace('a');
      }
    };
    await host.take(1);
    await host.pass(40 * second);
    await recycle(8);
    await host.take(2);
    await recycle(60);
    assert.deepEqual([host.active(), host.restores.length, settledSerial(host)], ['2', 0, 2]);
  });

  it('keeps a release where a supervisor recorded as many abnormal ends before the swap', async () => {
    const driver = supervisedDriver(['a'], 'recorded');
    using host = bakingHost(driver);
    await host.take(1);
    await host.pass(bakeMs + 10 * second);
    for (let count = 0; count < 40; count += 1) {
      await host.live(40 * second);
      driver.replace('a');
      if (count === 14) await host.take(2);
    }
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
  });

  it('settles the second release of a new host, because the ends after the failure of the first one are ordinary', async () => {
    const driver = supervisedDriver(['a'], 'unrecorded');
    using host = bakingHost(driver);
    const recycle = async (times: number): Promise<void> => {
      for (let count = 0; count < times; count += 1) {
        await host.live(16 * second);
        driver.replace('a');
      }
    };
    await host.take(1);
    await recycle(50);
    await host.take(2);
    await recycle(90);
    assert.deepEqual([host.active(), host.restores.length, settledSerial(host)], ['2', 0, 2]);
  });

  it('causes a rollback when they exit at more than twice the rate', longCase, async () => {
    const driver = supervisedDriver(['a'], 'unrecorded');
    using host = bakingHost(driver);
    await host.take(1);
    await host.pass(bakeMs + 10 * second);
    for (let count = 0; count < 20; count += 1) {
      await host.live(60 * second);
      driver.replace('a');
    }
    await host.take(2);
    for (let count = 0; count < 30 && host.restores.length === 0; count += 1) {
      await host.live(8 * second);
      driver.replace('a');
    }
    assert.deepEqual([host.active(), host.restores.length], ['1', 1]);
  });
});

function settledSerial(host: BakingHost): number | undefined {
  return host.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial;
}
