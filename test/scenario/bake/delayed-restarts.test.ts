// A worker that crashes soon after each start. Its supervisor waits longer than that before it starts the next process.
// No supervisor records the exits, as with a pid file.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { settleInTurn } from '../../kit/agent/settle-now.js';
import {
  type BakingHost,
  bakingHost,
  type SupervisedDriver,
  supervisedDriver,
} from '../../kit/host/baking-host.js';

const second = 1000;
const forMs = 10 * second;
const reset = { driver: 'scripted', options: {}, timeoutMs: second, min: 1 };

interface Scene extends Disposable {
  readonly host: BakingHost;
  /** Ends the process of a worker without a successor. */
  end(worker: string): void;
  start(worker: string): void;
}

/** Release 1 has settled, and release 2 was activated now. */
async function onTwo(names: readonly string[], restarts = 2): Promise<Scene> {
  const driver: SupervisedDriver = supervisedDriver(names, 'unrecorded');
  const dead = new Set<string>();
  Object.assign(driver, { liveness: async (name: string) => (dead.has(name) ? 'dead' : 'alive') });
  const bundles = [{ name: 'access', bake: { forMs, restarts } }];
  const host = bakingHost(driver, { bundles, groups: { app: { config: { reset } } } });
  await host.take(1);
  await host.live(60 * second);
  await host.take(2);
  return {
    host,
    end: (name) => {
      dead.add(name);
      driver.processes.delete(name);
    },
    start: (name) => {
      dead.delete(name);
      driver.replace(name, 'unrecorded');
    },
    [Symbol.dispose]: () => host[Symbol.dispose](),
  };
}

/** One run of a process, and the time until the next one; the agent reads the set in each. */
async function crash({ host, end, start }: Scene, name: string, delayMs: number): Promise<void> {
  await host.pass(2 * second);
  end(name);
  for (let leftMs = delayMs; leftMs > 0; leftMs -= 2 * second) {
    await host.pass(Math.min(2 * second, leftMs));
    await settleInTurn(host.test.host);
  }
  start(name);
  await settleInTurn(host.test.host);
}

const agent = { version: '', state: 'run', contact: { contact: {} }, problems: [] } as const;

const overdueGroups = ({ test: { host } }: BakingHost): unknown =>
  statusReport(host, agent).problems.find(({ code }) => code === 'BAKE_OVERDUE')?.facts['groups'];

function healthOf({ test: { host } }: BakingHost): string[] {
  const { findings } = judgeHostHealth(statusReport(host, agent));
  return findings.filter(({ level }) => level === 'critical').map(({ code }) => code);
}

const settledSerial = ({ test: { host } }: BakingHost): number | undefined =>
  host.ledger.read().settledReleases?.['access']?.[0]?.serial;

describe('a worker that is down for longer than it runs', () => {
  for (const delayMs of [6 * second, 12 * second])
    it(`causes a rollback of the release when its restarts follow ${delayMs / second} s after its exits`, async () => {
      using scene = await onTwo(['a']);
      for (let crashes = 0; crashes < 6; crashes += 1) await crash(scene, 'a', delayMs);
      assert.deepEqual([scene.host.active(), scene.host.restores.length], ['1', 1]);
    });

  it('causes a rollback of the release when it runs, and is notified, only between two observations', async () => {
    using scene = await onTwo(['a']);
    const { driver, pass, test } = scene.host;
    // The identity format of drivers: pid and start time in clock ticks after boot. No kernel has such a pid.
    driver.processes.set('a', '4194304@1');
    await scene.host.live(4 * second);
    for (let run = 1; run < 10 && scene.host.active() === '2'; run += 1) {
      scene.end('a');
      await pass(2 * second);
      scene.start('a');
      driver.processes.set('a', `${4_194_304 + run}@${run * 200}`);
      await settleInTurn(test.host);
    }
    assert.deepEqual([scene.host.active(), scene.host.restores.length], ['1', 1]);
  });

  it('causes a rollback of the release when another worker works, which does not settle the release earlier', async () => {
    using scene = await onTwo(['a', 'b']);
    for (let crashes = 0; crashes < 6; crashes += 1) {
      assert.equal(settledSerial(scene.host), 1);
      await crash(scene, 'a', 12 * second);
    }
    assert.deepEqual([scene.host.active(), scene.host.restores.length], ['1', 1]);
  });

  it('delays the settling of a release by at most three bake times after it was stopped', async () => {
    using scene = await onTwo(['a', 'b']);
    await scene.host.pass(2 * second);
    scene.end('a');
    await scene.host.live(3 * forMs - 4 * second);
    assert.equal(settledSerial(scene.host), 1);
    await scene.host.live(8 * second);
    assert.deepEqual([settledSerial(scene.host), scene.host.active()], [2, '2']);
  });
});

describe('a release that no worker has used for three bake times', () => {
  it('is neither settled nor rolled back, and health is critical until a worker uses it', async () => {
    using scene = await onTwo(['a']);
    await scene.host.pass(2 * second);
    scene.end('a');
    await scene.host.live(3 * forMs - 4 * second);
    assert.ok(!healthOf(scene.host).includes('BAKE_OVERDUE'));
    await scene.host.live(8 * second);
    assert.ok(healthOf(scene.host).includes('BAKE_OVERDUE'));
    assert.deepEqual(overdueGroups(scene.host), ['app']);
    assert.deepEqual([settledSerial(scene.host), scene.host.active()], [1, '2']);
    scene.start('a');
    await scene.host.live(30 * second);
    assert.ok(!healthOf(scene.host).includes('BAKE_OVERDUE'));
    assert.equal(settledSerial(scene.host), 2);
  });
});
