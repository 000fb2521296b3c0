// A worker that defers has given no verdict: the move waits for it, then the worker is pending, and the release stays active.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import type { HookConfig, WorkerGroupConfig } from '../../../src/core/config/config.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { notNow } from '../../../src/workers/contract/answer.js';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { settleNow } from '../../kit/agent/settle-now.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const busy = (): Answer => notNow('NOK busy');
const publish = (test: TestHost, serial: number, more = {}) =>
  test.publish('access', { 'policy.yaml': `v${serial}` }, { serial, ...more });
const ends = ({ outcome, exitCode, generation, problems: [first] }: CycleResult) => [
  ...[outcome, exitCode, generation, first?.code],
];

interface Scene {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  /** Milliseconds since the begin of the scene, for each notification of the newest generation. */
  readonly times: number[];
}

async function scene(reset: Partial<NonNullable<WorkerGroupConfig['reset']>> = {}): Promise<Scene> {
  const times: number[] = [];
  const driver = scriptedDriver({ a: confirms });
  const config = {
    reset: { driver: 'scripted', options: {}, timeoutMs: 1000, min: 0, notNowForMs: 60_000, ...reset },
  };
  const test = testHost({ groups: { app: { driver, config } } });
  await publish(test, 1);
  await test.pull();
  return { test, driver, times };
}

describe('a worker that defers', () => {
  it('is notified again after 1 s, 2 s and then each 5 s, and accepts the release within the move', async () => {
    const { test, driver } = await scene();
    using _ = test;
    const times: number[] = [];
    let beganMs: number | undefined;
    driver.workers.set('a', (generation) => {
      beganMs ??= test.clock.monotonicMs();
      times.push(test.clock.monotonicMs() - beganMs);
      return times.length < 6 ? busy() : confirms(generation);
    });
    await publish(test, 2);
    assert.deepEqual(ends(await test.pull()), ['activated', 0, 2, undefined]);
    assert.deepEqual(times, [0, 1000, 3000, 8000, 13_000, 18_000]);
  });

  it('is pending after its wait: the release stays active, degraded, and is not refused', async () => {
    const { test, driver } = await scene();
    using _ = test;
    driver.workers.set('a', busy);
    await publish(test, 2);
    const begunMs = test.clock.monotonicMs();
    assert.deepEqual(ends(await test.pull()), ['degraded', 4, 2, 'WORKER_UNREACHABLE']);
    const tookMs = test.clock.monotonicMs() - begunMs;
    assert.ok(tookMs > 50_000 && tookMs <= 61_000, `${tookMs} ms`);
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.equal(test.host.ledger.read().blocked, undefined);
  });

  it('shares its wait with the other workers of its group, within the deadline of the group', async () => {
    const { test, driver } = await scene({ deadlineMs: 10_000 });
    using _ = test;
    for (const worker of ['a', 'b', 'c']) driver.workers.set(worker, busy);
    await publish(test, 2);
    const begunMs = test.clock.monotonicMs();
    assert.equal((await test.pull()).outcome, 'degraded');
    assert.ok(test.clock.monotonicMs() - begunMs <= 11_000);
  });

  it('is notified again each 5 s for ten minutes, and then with a growing backoff', async () => {
    const { test, driver } = await scene({ notNowForMs: 1000 });
    using _ = test;
    driver.workers.set('a', busy);
    await publish(test, 2);
    await test.pull();
    const askedIn = async (ms: number): Promise<number> => {
      const before = driver.notified.length;
      for (let passedMs = 0; passedMs < ms; passedMs += 1000) {
        await test.clock.advance(1000);
        await settleNow(test.host, { ignoreBackoff: false });
      }
      return driver.notified.length - before;
    };
    assert.equal(await askedIn(590_000), 118);
    assert.equal((await askedIn(600_000)) < 15, true, 'the usual backoff of a pending worker');
    driver.workers.set('a', confirms);
    assert.equal((await settleNow(test.host)).problems.length, 0);
    assert.equal(test.host.ledger.read().workers['app/a']?.notNowSinceMs, undefined);
  });

  it('is critical only after it was busy for longer than ten minutes', async () => {
    const { test, driver } = await scene({ notNowForMs: 1000 });
    using _ = test;
    driver.workers.set('a', busy);
    await publish(test, 2);
    await test.pull();
    const code = () => {
      const facts = { version: '', state: 'run', contact: { contact: {} }, problems: [] } as const;
      return statusReport(test.host, facts).problems[0]?.code;
    };
    await test.clock.advance(599_000);
    assert.equal(code(), 'WORKER_UNREACHABLE');
    await test.clock.advance(2000);
    assert.equal(code(), 'WORKER_LOST_AFTER');
  });

  it('does not block a restore after the refusal of another worker', async () => {
    const { test, driver } = await scene({ notNowForMs: 3000 });
    using _ = test;
    driver.workers.set('b', confirms);
    await settleNow(test.host);
    driver.workers.set('a', busy);
    driver.workers.set('b', (n) => (n === 1 ? confirms(n) : { kind: 'refused', text: 'bad syntax' }));
    await publish(test, 2);
    assert.deepEqual(ends(await test.pull()), ['rolled-back', 5, 1, 'WORKER_REFUSED']);
    assert.equal(test.host.ledger.read().blocked, undefined);
    assert.equal(test.host.ledger.read().workers['app/a']?.state, 'unreachable');
  });

  it('accepts the move away from a withdrawn release as soon as it is free', async () => {
    const { test, driver } = await scene({ notNowForMs: 3000 });
    using _ = test;
    await publish(test, 2);
    await test.pull();
    driver.workers.set('a', busy);
    await publish(test, 1, { withdrawn: [2] });
    assert.deepEqual(ends(await test.pull()), ['degraded', 4, 3, 'WORKER_UNREACHABLE']);
    assert.equal(test.read('access/policy.yaml'), 'v1');
    driver.workers.set('a', confirms);
    await test.clock.advance(5000);
    assert.deepEqual((await settleNow(test.host, { ignoreBackoff: false })).problems, []);
  });
});

describe('a deferral of a command', () => {
  const hook = (script: string, more: Partial<HookConfig> = {}): HookConfig => ({
    ...{ run: ['sh', '-c', script], timeoutMs: 5000, notNow: { exit: [9], match: 'busy' }, ...more },
  });
  const script = 'grep -q v1 {bundle}/policy.yaml || { echo busy; exit 9; }';

  it('defers the bundle of a check', async () => {
    const check = { kind: 'run', name: 'c', ...hook(script) } as const;
    using test = testHost({ bundles: [{ name: 'access', checks: [check] }] });
    await publish(test, 1);
    await test.pull();
    await publish(test, 2);
    assert.deepEqual(ends(await test.pull()), ['deferred', 8, 1, 'CHECK_DEFERRED']);
    assert.deepEqual(test.host.refusals.read().refusals, []);
  });

  it('defers the candidate of a canary', async () => {
    const driver = scriptedDriver({ a: confirms });
    const canary = { kind: 'run', hook: hook(script) } as const;
    using test = testHost({ groups: { app: { driver, config: { canary } } } });
    await publish(test, 1);
    await test.pull();
    await publish(test, 2);
    assert.deepEqual(ends(await test.pull()), ['deferred', 8, 1, 'CANARY_DEFERRED']);
  });

  it('restores the previous generation for a loader, and retries after a minute', async () => {
    using test = testHost({ groups: { app: { config: { load: hook(script) } } } });
    await publish(test, 1);
    await test.pull();
    await publish(test, 2);
    assert.deepEqual(ends(await test.pull()), ['deferred', 8, 1, 'LOADER_DEFERRED']);
    assert.equal(test.host.ledger.read().waiting?.['access']?.vain?.tries, 1);
  });

  it('is a missing verdict of a probe', longCase, async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver, config: { probe: hook(script) } } } });
    await publish(test, 1);
    await test.pull();
    await publish(test, 2);
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.warnings[0]?.code], ['activated', 'PROBE_SILENT']);
  });
});
