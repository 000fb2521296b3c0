// Workers that are dead although their driver lists them, because a killed process leaves its socket or its pid file.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refreshMembers } from '../../../../src/agent/notify/membership.js';
import type { WorkerGroupConfig } from '../../../../src/core/config/config.js';
import { codes, entryOf, probe, settle } from '../../../kit/agent/settled-world.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { type LivingDriver, livingDriver } from '../../../kit/workers/living-workers.js';
import { confirms } from '../../../kit/workers/scripted-driver.js';

interface World {
  readonly test: TestHost;
  readonly driver: LivingDriver;
}

/** Two workers that confirmed the first version, with sockets that do not identify their process. */
async function world(config: Partial<WorkerGroupConfig> = {}): Promise<World> {
  const driver = livingDriver({ a: confirms, b: confirms });
  const test = testHost({ groups: { app: { driver, config } } });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  driver.notified.length = 0;
  return { test, driver };
}

const apart = (test: TestHost) => settle(test.host, { groups: test.host.groups, livenessCheck: 'departed' });

describe('a worker that is killed after its answer', () => {
  it('departs at the next cycle, and is notified when it is back', async () => {
    const { test, driver } = await world();
    using _ = test;
    driver.dead.add('b');
    const { outcome, confirmed } = await test.pull();
    assert.deepEqual([outcome, confirmed, driver.notified], ['unchanged', true, []]);
    assert.equal(entryOf(test, 'app/b')?.goneAtMs, test.clock.nowMs());
    assert.equal(entryOf(test, 'app/a')?.goneAtMs, undefined);
    await apart(test);
    assert.notEqual(entryOf(test, 'app/b')?.goneAtMs, undefined, 'it is still dead');
    driver.dead.delete('b');
    await apart(test);
    assert.deepEqual(driver.notified, ['b 1']);
    const { state, goneAtMs } = entryOf(test, 'app/b') ?? {};
    assert.deepEqual([state, goneAtMs], ['confirmed', undefined]);
  });

  it('departs as soon as its driver sees no process of it any more, and is not notified', async () => {
    const { test, driver } = await world();
    using _ = test;
    driver.processes.set('b', 'first');
    await apart(test);
    driver.notified.length = 0;
    driver.processes.delete('b');
    driver.dead.add('b');
    await apart(test);
    assert.deepEqual([driver.notified, entryOf(test, 'app/b')?.goneAtMs], [[], test.clock.nowMs()]);
  });

  it('is reported as missing if its group needs it for its minimum', async () => {
    const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 2 };
    const { test, driver } = await world({ reset });
    using _ = test;
    driver.dead.add('b');
    const { exitCode, problems } = await test.pull();
    assert.deepEqual([exitCode, problems.map((one) => one.code)], [4, ['WORKERS_MISSING']]);
  });

  it('is not notified, and is removed after it stayed away for long', async () => {
    const { test, driver } = await world();
    using _ = test;
    driver.dead.add('b');
    await test.pull();
    await test.clock.advance(700_000);
    for (let turn = 0; turn < 2; turn++) assert.deepEqual(codes(await apart(test)), []);
    assert.deepEqual([driver.notified, entryOf(test, 'app/b')], [[], undefined]);
  });

  it('does not depart because the members of another group were read', async () => {
    const [one, other] = [livingDriver({ a: confirms }), livingDriver({ b: confirms })];
    using test = testHost({ groups: { app: { driver: one }, other: { driver: other } } });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    const groups = test.host.groups.filter(({ config }) => config.name === 'app');
    await settle(test.host, { groups, livenessCheck: 'departed' });
    const { state, goneAtMs } = entryOf(test, 'other/b') ?? {};
    assert.deepEqual([state, goneAtMs], ['confirmed', undefined]);
  });

  it('stays in the ledger although another group has the most departed members', async () => {
    const [one, other] = [livingDriver({ a: confirms }), livingDriver({ b: confirms })];
    using test = testHost({ groups: { app: { driver: one }, other: { driver: other } } });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    const { workers } = test.host.ledger.read();
    const [entry, nowMs] = [workers['app/a']!, test.clock.nowMs()];
    const gone = Array.from({ length: 256 }, (_, at) => [`app/w${at}`, { ...entry, goneAtMs: nowMs }]);
    const longer = { ...entry, goneAtMs: nowMs - 1000 };
    setLedger(test.host.ledger, { workers: { ...Object.fromEntries(gone), 'other/c': longer } });
    const groups = test.host.groups.filter(({ config }) => config.name === 'app');
    await settle(test.host, { groups, livenessCheck: 'departed' });
    assert.equal(entryOf(test, 'other/c')?.goneAtMs, longer.goneAtMs);
    assert.notEqual(entryOf(test, 'app/w0'), undefined);
  });

  it('is not removed while its group has fewer members than its `min`', async () => {
    const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 2 };
    const { test, driver } = await world({ reset });
    using _ = test;
    driver.dead.add('b');
    await test.pull();
    const goneAtMs = test.clock.nowMs();
    await test.clock.advance(700_000);
    await apart(test);
    assert.equal(entryOf(test, 'app/b')?.goneAtMs, goneAtMs);
  });

  it('stays pending if it was notified and could not be reached', async () => {
    const { test, driver } = await world();
    using _ = test;
    driver.dead.add('b');
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    assert.equal((await test.pull()).exitCode, 4);
    assert.equal((await test.pull()).exitCode, 4);
    assert.equal(entryOf(test, 'app/b')?.state, 'unreachable');
  });
});

describe('a worker with a different process a moment after its answer', () => {
  for (const [what, config, isReplaced] of [
    ['counts as replaced by the notification', {}, true],
    ['is left to its probe if its group has one', probe('true'), false],
  ] as const) {
    it(what, async () => {
      const driver = livingDriver({ a: () => ({ kind: 'notified', text: 'queued' }) });
      driver.processes.set('a', 'first');
      using test = testHost({ groups: { app: { driver, config } } });
      await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
      await test.pull();
      driver.processes.set('a', 'second');
      const { groups } = test.host;
      await refreshMembers(test.host, { active: 1, groups, livenessCheck: 'departed' });
      const { replacedAtMs, soonReplacements } = entryOf(test, 'app/a') ?? {};
      assert.deepEqual([replacedAtMs !== undefined, soonReplacements], [isReplaced, undefined]);
    });
  }
});
