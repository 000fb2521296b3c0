// A daemon that refuses by silence: the previous generation is restored, the release is retried a few times, and then waits for an
// operator or a newer release. It is never recorded as refused, because silence is no explicit refusal.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { resume } from '../../../src/agent/select/pause.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const silence = {
  kind: 'unreachable',
  text: '2 of its 2 children still serve as before',
  silence: 'refuses',
} as const;
const minuteMs = 60_000;

interface Scene {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  publish(serial: number): Promise<unknown>;
}

/** Generation 1 is in use; the daemon is silent for later generations. */
async function scene(): Promise<Scene> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ groups: { web: { driver } } });
  const publish = (serial: number) => test.publish('access', { 'policy.yaml': `v${serial}` }, { serial });
  await publish(1);
  await test.pull();
  driver.workers.set('a', (generation) => (generation === 1 ? confirms(generation) : silence));
  await publish(2);
  return { test, driver, publish };
}

const ends = ({ outcome, exitCode, generation, problems }: CycleResult) => [
  outcome,
  exitCode,
  generation,
  problems[0]?.code,
];
const restored = ['rolled-back', 5, 1, 'SILENT_REFUSAL'];
const left = ['degraded', 4, 1, 'SILENT_REFUSAL'];

/** @returns the result of the last of three attempts */
async function afterThreeAttempts({ test }: Scene): Promise<CycleResult> {
  await test.pull();
  await test.clock.advance(minuteMs);
  await test.pull();
  await test.clock.advance(2 * minuteMs);
  return test.pull();
}

describe('a release that a daemon refuses by silence', () => {
  it('causes a restore, and is not recorded as refused', async () => {
    const one = await scene();
    using test = one.test;
    assert.deepEqual(ends(await test.pull()), restored);
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.deepEqual(one.driver.notified, ['a 1', 'a 2', 'a 1']);
    assert.equal(
      statusReport(test.host, { version: '', state: 'run', contact: { contact: {} }, problems: [] })
        .confirmed,
      true,
    );
  });

  it('causes a rollback also if the daemon was stopped during its notification', async () => {
    const one = await scene();
    using test = one.test;
    one.driver.workers.set('a', () => ({ kind: 'unreachable', text: 'stopped' }));
    assert.equal((await test.pull()).generation, 2);
    one.driver.workers.set('a', (generation) => (generation === 2 ? silence : confirms(generation)));
    assert.deepEqual(ends(await test.pull()), restored);
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.deepEqual(ends(await test.pull()), left);
  });

  it('is retried after one minute, then after two, and not before', async () => {
    const one = await scene();
    using test = one.test;
    await test.pull();
    assert.deepEqual(ends(await test.pull()), left);
    await test.clock.advance(minuteMs);
    assert.deepEqual(ends(await test.pull()), restored);
    await test.clock.advance(minuteMs);
    assert.deepEqual(ends(await test.pull()), left);
    await test.clock.advance(minuteMs);
    assert.deepEqual(ends(await test.pull()), restored);
  });

  it('waits after three attempts, degraded, without a limit', async () => {
    const one = await scene();
    using test = one.test;
    assert.deepEqual(ends(await afterThreeAttempts(one)), restored);
    const tries = one.driver.notified.length;
    await test.clock.advance(48 * 60 * minuteMs);
    assert.deepEqual(ends(await test.pull()), left);
    assert.equal(one.driver.notified.length, tries, 'no worker was notified again');
    const { problems } = statusReport(test.host, {
      ...{ version: '', state: 'run', contact: { contact: {} }, problems: [] },
    });
    assert.deepEqual(
      problems.map(({ code, facts }) => [code, facts['serial'], facts['tries']]),
      [['SILENT_REFUSAL', 2, 3]],
    );
  });

  it('is replaced by a newer release, which has three attempts of its own', async () => {
    const one = await scene();
    using test = one.test;
    await afterThreeAttempts(one);
    await one.publish(3);
    assert.deepEqual(ends(await test.pull()), restored);
    await test.clock.advance(minuteMs);
    assert.deepEqual(ends(await test.pull()), restored);
    one.driver.workers.set('a', confirms);
    await test.clock.advance(2 * minuteMs);
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(test.host.ledger.read().waiting, undefined);
  });

  it('is retried at once after `writ resume`, which reports it, and by force', async () => {
    const one = await scene();
    using test = one.test;
    await afterThreeAttempts(one);
    assert.deepEqual(resume(test.host).ended, [{ kind: 'hold', what: 'access 2' }]);
    assert.deepEqual(ends(await test.pull()), restored);
    await afterThreeAttempts(one);
    one.driver.workers.set('a', confirms);
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
  });
});

describe('silence that is no refusal', () => {
  it('during a restore causes no block, and the worker is pending', async () => {
    const one = await scene();
    using test = one.test;
    one.driver.workers.set('a', () => silence);
    const result = await test.pull();
    assert.deepEqual(ends(result), restored);
    assert.equal(test.host.ledger.read().blocked, undefined);
    assert.equal(test.host.ledger.read().workers['web/a']?.state, 'unreachable');
  });

  it('of a worker that accepted the active release before causes no rollback', async () => {
    const one = await scene();
    using test = one.test;
    one.driver.workers.set('a', () => ({ kind: 'notified', text: 'its children are not visible' }));
    await test.pull();
    one.driver.workers.set('a', () => silence);
    await one.publish(3);
    assert.equal((await test.pull()).generation, 2);
    assert.equal((await test.pull()).generation, 2);
  });

  it('of a process that started after the swap causes no rollback', async () => {
    const one = await scene();
    using test = one.test;
    one.driver.workers.set('a', () => ({ kind: 'unreachable', text: 'stopped' }));
    await test.pull();
    one.driver.processes.set('a', 'started after the swap');
    one.driver.workers.set('a', () => silence);
    const { outcome, generation } = await test.pull();
    assert.deepEqual([outcome, generation], ['degraded', 2]);
  });

  it('of a worker that is notified between moves causes no rollback, and delays no other worker', async () => {
    const down = (): Answer => ({ kind: 'unreachable', text: 'down' });
    const driver = scriptedDriver({ a: down, b: down });
    using test = testHost({ groups: { web: { driver, config: { rolling: 1 } } } });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    driver.workers.set('a', () => silence);
    driver.workers.set('b', confirms);
    const again = await test.pull();
    assert.deepEqual([again.outcome, again.generation], ['degraded', 1]);
    assert.equal(test.host.ledger.read().workers['web/b']?.state, 'confirmed');
  });
});
