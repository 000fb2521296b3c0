// A daemon that refuses by saying nothing: its release is taken back, tried a few times, and then waits for a person or a
// newer one. Nobody has said no: it is never remembered as refused.
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

/** Generation 1 is in use; what comes then is met with silence. */
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
const takenBack = ['rolled-back', 5, 1, 'SILENT_REFUSAL'];
const left = ['degraded', 4, 1, 'SILENT_REFUSAL'];

/** @returns the last of three tries */
async function triedOut({ test }: Scene): Promise<CycleResult> {
  await test.pull();
  await test.clock.advance(minuteMs);
  await test.pull();
  await test.clock.advance(2 * minuteMs);
  return test.pull();
}

describe('a release that a daemon meets with silence', () => {
  it('is taken back, and not remembered as refused', async () => {
    const one = await scene();
    using test = one.test;
    assert.deepEqual(ends(await test.pull()), takenBack);
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.deepEqual(one.driver.notified, ['a 1', 'a 2', 'a 1']);
    assert.equal(
      statusReport(test.host, { version: '', state: 'run', contact: { contact: {} }, problems: [] })
        .confirmed,
      true,
    );
  });

  it('is taken back also where the daemon was stopped while it was notified', async () => {
    const one = await scene();
    using test = one.test;
    one.driver.workers.set('a', () => ({ kind: 'unreachable', text: 'stopped' }));
    assert.equal((await test.pull()).generation, 2);
    one.driver.workers.set('a', (generation) => (generation === 2 ? silence : confirms(generation)));
    assert.deepEqual(ends(await test.pull()), takenBack);
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.deepEqual(ends(await test.pull()), left);
  });

  it('is tried again after a minute, then after two, and not before', async () => {
    const one = await scene();
    using test = one.test;
    await test.pull();
    assert.deepEqual(ends(await test.pull()), left);
    await test.clock.advance(minuteMs);
    assert.deepEqual(ends(await test.pull()), takenBack);
    await test.clock.advance(minuteMs);
    assert.deepEqual(ends(await test.pull()), left);
    await test.clock.advance(minuteMs);
    assert.deepEqual(ends(await test.pull()), takenBack);
  });

  it('waits after three tries, degraded, however long', async () => {
    const one = await scene();
    using test = one.test;
    assert.deepEqual(ends(await triedOut(one)), takenBack);
    const tries = one.driver.notified.length;
    await test.clock.advance(48 * 60 * minuteMs);
    assert.deepEqual(ends(await test.pull()), left);
    assert.equal(one.driver.notified.length, tries, 'nobody was notified again');
    const { problems } = statusReport(test.host, {
      ...{ version: '', state: 'run', contact: { contact: {} }, problems: [] },
    });
    assert.deepEqual(
      problems.map(({ code, facts }) => [code, facts['serial'], facts['tries']]),
      [['SILENT_REFUSAL', 2, 3]],
    );
  });

  it('gives way to a newer one, which has three tries of its own', async () => {
    const one = await scene();
    using test = one.test;
    await triedOut(one);
    await one.publish(3);
    assert.deepEqual(ends(await test.pull()), takenBack);
    await test.clock.advance(minuteMs);
    assert.deepEqual(ends(await test.pull()), takenBack);
    one.driver.workers.set('a', confirms);
    await test.clock.advance(2 * minuteMs);
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(test.host.ledger.read().waiting, undefined);
  });

  it('is tried again at once after `writ resume`, which says so, and by force', async () => {
    const one = await scene();
    using test = one.test;
    await triedOut(one);
    assert.deepEqual(resume(test.host).ended, [{ kind: 'hold', what: 'access 2' }]);
    assert.deepEqual(ends(await test.pull()), takenBack);
    await triedOut(one);
    one.driver.workers.set('a', confirms);
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
  });
});

describe('silence that is no no', () => {
  it('on the way back blocks nobody: the worker is pending', async () => {
    const one = await scene();
    using test = one.test;
    one.driver.workers.set('a', () => silence);
    const result = await test.pull();
    assert.deepEqual(ends(result), takenBack);
    assert.equal(test.host.ledger.read().blocked, undefined);
    assert.equal(test.host.ledger.read().workers['web/a']?.state, 'unreachable');
  });

  it('of a worker that took the active release before takes nothing back', async () => {
    const one = await scene();
    using test = one.test;
    one.driver.workers.set('a', () => ({ kind: 'notified', text: 'its children are not visible' }));
    await test.pull();
    one.driver.workers.set('a', () => silence);
    await one.publish(3);
    assert.equal((await test.pull()).generation, 2);
    assert.equal((await test.pull()).generation, 2);
  });

  it('of a process that started after the swap takes nothing back', async () => {
    const one = await scene();
    using test = one.test;
    one.driver.workers.set('a', () => ({ kind: 'unreachable', text: 'stopped' }));
    await test.pull();
    one.driver.processes.set('a', 'started after the swap');
    one.driver.workers.set('a', () => silence);
    const { outcome, generation } = await test.pull();
    assert.deepEqual([outcome, generation], ['degraded', 2]);
  });

  it('of a worker that is notified apart takes nothing back, and keeps nobody else waiting', async () => {
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
