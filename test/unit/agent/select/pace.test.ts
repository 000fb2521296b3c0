import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { endExpiredWaits } from '../../../../src/agent/control/operator-requests.js';
import { rollBack } from '../../../../src/agent/cycle/rollback.js';
import { statusReport } from '../../../../src/agent/report/status-report.js';
import type { WorkerGroupConfig } from '../../../../src/core/config/config.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { cycleOn } from '../../../kit/agent/cycle-on.js';
import { type Files, type TestHost, type TestHostOptions, testHost } from '../../../kit/host/test-host.js';
import {
  confirms,
  refuses,
  type ScriptedDriver,
  scriptedDriver,
} from '../../../kit/workers/scripted-driver.js';

const minuteMs = 60_000;
const codes = ({ problems }: CycleResult): string[] => problems.map((one) => one.code);
const facts = { version: '0.1.0', state: 'run', contact: { contact: {} }, problems: [] } as const;

interface World {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  /** Publishes the next release, of one file by default. */
  readonly publish: (files?: Files) => Promise<unknown>;
}

/** Version 1 is active in a group with this activation delay. */
async function world(
  config: Partial<WorkerGroupConfig>,
  more: Partial<TestHostOptions> = {},
): Promise<World> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ groups: { app: { driver, config: { uses: ['access'], ...config } } }, ...more });
  let serial = 0;
  const publish: World['publish'] = async (files) => {
    serial += 1;
    return test.publish('access', files ?? { 'policy.yaml': `${serial}` }, { serial });
  };
  const others = (more.bundles ?? []).filter((one) => one.name !== 'access');
  for (const { name } of others) await test.publish(name, { 'policy.yaml': '1' }, { serial: 1 });
  await publish();
  assert.equal((await test.pull()).outcome, 'activated', 'a host without policy waits for nothing');
  driver.notified.length = 0;
  return { test, driver, publish };
}

describe('a group with a quiet time', () => {
  it('is moved after the quiet time and not before, and the pull names the release and the time', async () => {
    const { test, driver, publish } = await world({ settleMs: minuteMs });
    using _ = test;
    await publish();
    const result = await test.pull();
    const untilMs = test.clock.nowMs() + minuteMs;
    assert.deepEqual([result.exitCode, codes(result)], [8, ['ACTIVATION_PACED']]);
    const { groups, untilMs: reportedMs } = result.problems[0]?.facts ?? {};
    assert.deepEqual([groups, reportedMs, result.bundles[0]?.outcome], [['app'], untilMs, 'deferred']);
    assert.deepEqual([driver.notified, test.read('access/policy.yaml')], [[], '1']);
    await test.clock.advance(minuteMs);
    assert.equal((await test.pull()).outcome, 'activated');
    assert.deepEqual([driver.notified.length, test.read('access/policy.yaml')], [1, '2']);
  });

  it('is moved once, to the newest release, if another one arrives in the quiet time, which begins again', async () => {
    const { test, driver, publish } = await world({ settleMs: minuteMs });
    using _ = test;
    for (const _serial of [2, 3]) {
      await publish();
      assert.equal((await test.pull()).exitCode, 8);
      await test.clock.advance(40_000);
    }
    assert.equal((await test.pull()).exitCode, 8, 'forty seconds after the last change');
    await test.clock.advance(20_000);
    assert.equal((await test.pull()).outcome, 'activated');
    assert.deepEqual([driver.notified.length, test.read('access/policy.yaml')], [1, '3']);
  });

  it('is moved also if changes never end', async () => {
    const { test, publish } = await world({ settleMs: minuteMs });
    using _ = test;
    const begunMs = test.clock.nowMs();
    for (let outcome = 'deferred'; outcome === 'deferred'; ) {
      await publish();
      outcome = (await test.pull()).outcome;
      if (outcome === 'deferred') await test.clock.advance(50_000);
    }
    assert.equal(test.clock.nowMs() - begunMs, 5 * 50_000);
  });

  const stepsOf = async (test: TestHost): Promise<string[]> =>
    (await test.sync()).progress.steps.map((one) => one.step);

  it('downloads nothing of a release that waits', async () => {
    const { test, publish } = await world({ settleMs: minuteMs });
    using _ = test;
    await publish();
    assert.deepEqual(await stepsOf(test), ['refresh', 'select']);
    assert.deepEqual(await stepsOf(test), ['refresh', 'select']);
    assert.deepEqual(fs.readdirSync(test.host.paths.staging), []);
    await test.clock.advance(minuteMs);
    assert.equal((await test.pull()).outcome, 'activated');
  });

  it('downloads a release once, and not at every poll, where the affected groups depend on its files', async () => {
    const { test, publish } = await world({ settleMs: minuteMs, when: ['*.yaml'] });
    using _ = test;
    await publish();
    assert.ok((await stepsOf(test)).includes('fetch'));
    assert.deepEqual(await stepsOf(test), ['refresh', 'select']);
  });

  it('does not wait for the same files under another serial', async () => {
    const { test, publish } = await world({ settleMs: minuteMs });
    using _ = test;
    await publish({ 'policy.yaml': '1' });
    assert.notEqual((await test.pull()).outcome, 'deferred');
  });

  it('waits for the same time across a restart of the agent', async () => {
    const { test, publish } = await world({ settleMs: minuteMs });
    using _ = test;
    await publish();
    await test.pull();
    await test.clock.advance(30_000);
    const restarted = test.reopen();
    assert.equal((await cycleOn(restarted)).exitCode, 8);
    assert.equal(endExpiredWaits(restarted), false);
    await test.clock.advance(30_000);
    assert.deepEqual(
      [endExpiredWaits(restarted), endExpiredWaits(restarted)],
      [true, false],
      'reported once',
    );
    assert.equal((await cycleOn(restarted)).outcome, 'activated');
  });

  it('does not wait if an operator forces the pull', async () => {
    const { test, publish } = await world({ settleMs: minuteMs });
    using _ = test;
    await publish();
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
  });

  it('does not wait for a change that does not affect it', async () => {
    const { test, publish } = await world({ settleMs: minuteMs, when: ['views/**'] });
    using _ = test;
    await publish({ 'policy.yaml': 'new' });
    assert.equal((await test.pull()).outcome, 'activated');
    await publish({ 'policy.yaml': 'new', 'views/eu': '1' });
    assert.equal((await test.pull()).exitCode, 8);
  });

  it('makes the bundles of its set wait, and no other ones', async () => {
    const bundles = [{ name: 'access' }, { name: 'zones' }, { name: 'other' }];
    const config = { together: [['access', 'zones']] };
    const { test, publish } = await world({ settleMs: minuteMs }, { bundles, config });
    using _ = test;
    await publish();
    for (const name of ['zones', 'other']) await test.publish(name, { 'policy.yaml': '2' }, { serial: 2 });
    const result = await test.pull();
    assert.deepEqual(
      result.bundles.map((one) => [one.bundle, one.outcome]),
      [
        ['access', 'deferred'],
        ['zones', 'deferred'],
        ['other', 'activated'],
      ],
    );
    assert.equal(result.exitCode, 8);
  });

  it('has its release judged by the checks again after the wait', async () => {
    const { test, publish } = await world({ settleMs: minuteMs });
    using _ = test;
    const check = { kind: 'run', name: 'c', run: ['false'], timeoutMs: 60_000 } as const;
    await publish();
    const strict = test.reopen({
      bundles: [{ name: 'access', checks: [check] }],
      groups: { app: { config: { settleMs: minuteMs } } },
    });
    assert.equal((await cycleOn(strict)).exitCode, 8);
    await test.clock.advance(minuteMs);
    assert.equal((await cycleOn(strict)).exitCode, 3);
  });

  it('is shown by status while it waits, and not as a problem', async () => {
    const { test, publish } = await world({ settleMs: minuteMs });
    using _ = test;
    await publish();
    const last = await test.pull();
    const { waiting, problems } = statusReport(test.host, { ...facts, last });
    const untilMs = test.clock.nowMs() + minuteMs;
    assert.deepEqual([waiting, problems], [[{ bundle: 'access', serial: 2, groups: ['app'], untilMs }], []]);
    await test.clock.advance(minuteMs);
    await test.pull();
    assert.equal(statusReport(test.host, facts).waiting, undefined);
  });
});

describe('a group with a least time between two moves', () => {
  it('is not moved before that time is over, and then to the newest release', async () => {
    const { test, driver, publish } = await world({ minIntervalMs: minuteMs });
    using _ = test;
    await publish();
    assert.equal((await test.pull()).exitCode, 8);
    await test.clock.advance(30_000);
    await publish();
    assert.equal((await test.pull()).exitCode, 8);
    await test.clock.advance(30_000);
    assert.equal((await test.pull()).outcome, 'activated');
    assert.deepEqual([driver.notified.length, test.read('access/policy.yaml')], [1, '3']);
  });

  it('counts a rollback as a move, and does not delay a rollback by an operator', async () => {
    const { test, driver, publish } = await world({ minIntervalMs: minuteMs });
    using _ = test;
    await test.clock.advance(minuteMs);
    await publish();
    driver.workers.set('a', (generation) => (generation > 1 ? refuses('no')() : confirms(generation)));
    assert.equal((await test.pull()).outcome, 'rolled-back');
    driver.workers.set('a', confirms);
    await publish();
    assert.equal((await test.pull()).exitCode, 8);
    await test.clock.advance(minuteMs);
    assert.equal((await test.pull()).outcome, 'activated');
    const { signal } = new AbortController();
    const back = await rollBack(test.host, { by: 'anna', signal, onEvent: () => undefined });
    assert.equal(back.result.outcome, 'activated');
  });
});
