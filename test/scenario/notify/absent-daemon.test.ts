// A daemon that is down at a first deploy or at an update has refused nothing, although rndc and similar programs exit 1.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { HookConfig } from '../../../src/core/config/config.js';
import { command } from '../../../src/workers/drivers/command.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { driverContext } from '../../kit/workers/driver-context.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

/** A control program that succeeds while the daemon runs, and cannot connect otherwise. */
function hostOf(dir: TempDir): TestHost {
  const pidFile = dir.join('pid');
  const script = `test -e ${pidFile} || { echo "connect failed" >&2; exit 1; }`;
  const driver = command.create({ run: ['sh', '-c', script], pidFile, confirms: true }, driverContext());
  return testHost({ groups: { ns: { driver } } });
}

const up = (dir: TempDir): void => writeFileSync(dir.join('pid'), `${process.pid}\n`);
const down = (dir: TempDir): void => rmSync(dir.join('pid'));

describe('a daemon with a control program', () => {
  it('does not prevent a first deploy while it is down, and is notified when it is up', async () => {
    using dir = tempDir();
    using test = hostOf(dir);
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    const first = await test.pull();
    assert.deepEqual(
      [first.outcome, first.exitCode, first.generation, first.confirmed],
      ['degraded', 4, 1, false],
    );
    assert.deepEqual(test.host.refusals.read().refusals, []);
    up(dir);
    const second = await test.pull();
    assert.deepEqual([second.outcome, second.confirmed], ['unchanged', true]);
  });

  it('does not refuse a release while it is down at an update, and causes no block', async () => {
    using dir = tempDir();
    using test = hostOf(dir);
    up(dir);
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    down(dir);
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    const update = await test.pull();
    assert.deepEqual([update.outcome, update.generation], ['degraded', 2]);
    assert.deepEqual([test.host.refusals.read().refusals, test.host.ledger.read().blocked], [[], undefined]);
    up(dir);
    assert.deepEqual((await test.pull()).confirmed, true);
  });
});

/** Commands to a daemon that runs while the file `up` exists, and then refuses a policy with "bad". */
const talk = (dir: TempDir): string =>
  `test -e ${dir.join('pid')} || { echo "connect failed" >&2; exit 1; }
   ! grep -q bad {bundle}/policy.yaml`;
const hookOf = (dir: TempDir): HookConfig => ({
  ...{ run: ['sh', '-c', talk(dir)], timeoutMs: 60_000, sandbox: 'off' },
  unreachable: { exit: [1], match: 'connect failed' },
});
const release = (test: TestHost, serial: number, text = 'good'): Promise<unknown> =>
  test.publish('access', { 'policy.yaml': `${text} ${serial}` }, { serial });
const refusals = (test: TestHost) => test.host.refusals.read().refusals;

describe('a daemon with a loader', () => {
  it('does not prevent a first deploy while it is down, and is loaded when it is up', async () => {
    using dir = tempDir();
    using test = testHost({ groups: { ns: { config: { load: hookOf(dir) } } } });
    await release(test, 1);
    const first = await test.pull();
    assert.deepEqual([first.outcome, first.exitCode, first.generation], ['degraded', 4, 1]);
    assert.deepEqual([refusals(test), test.host.ledger.read().unloaded], [[], ['ns']]);
    assert.match(first.problems[0]?.message ?? '', /its loader: it reached no worker: exit 1/);
    up(dir);
    const second = await test.pull();
    assert.deepEqual([second.outcome, second.confirmed], ['unchanged', true]);
    assert.equal(test.host.ledger.read().unloaded, undefined);
  });

  it('does not refuse a release while it is down at an update, and refuses it when it is back', async () => {
    using dir = tempDir();
    using test = testHost({ groups: { ns: { config: { load: hookOf(dir) } } } });
    up(dir);
    await release(test, 1);
    assert.deepEqual((await test.pull()).confirmed, true);
    down(dir);
    await release(test, 2, 'bad');
    const update = await test.pull();
    assert.deepEqual([update.outcome, update.generation, refusals(test)], ['degraded', 2, []]);
    up(dir);
    const back = await test.pull();
    assert.deepEqual([back.outcome, back.generation, back.confirmed], ['rolled-back', 1, true]);
    assert.deepEqual(
      refusals(test).map(({ serial, code }) => [serial, code]),
      [[2, 'LOADER_FAILED']],
    );
    assert.equal(test.host.ledger.read().unloaded, undefined);
  });

  it('is retried with a backoff while its loader gives no verdict', async () => {
    using dir = tempDir();
    using test = testHost({ groups: { ns: { config: { load: hookOf(dir) } } } });
    await release(test, 1);
    await test.pull();
    await test.pull();
    await test.pull();
    assert.equal(test.host.ledger.read().workers['ns/load']?.tries, 3);
  });

  it('prevents the notification of its workers until it has loaded the policy', async () => {
    using dir = tempDir();
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { ns: { driver, config: { load: hookOf(dir) } } } });
    await release(test, 1);
    assert.equal((await test.pull()).outcome, 'degraded');
    assert.deepEqual(driver.notified, []);
    up(dir);
    assert.equal((await test.pull()).confirmed, true);
    assert.deepEqual(driver.notified, ['a 1']);
  });
});

describe('a daemon that a probe cannot reach', longCase, () => {
  it('is unreachable, neither confirmed nor refused, until the next probe that sees it confirms it', async () => {
    using dir = tempDir();
    using test = testHost({ groups: { ns: { config: { probe: hookOf(dir) } } } });
    await release(test, 1);
    const first = await test.pull();
    assert.deepEqual([first.outcome, first.confirmed, refusals(test)], ['degraded', false, []]);
    assert.equal(test.host.ledger.read().workers['ns/probe']?.state, 'unreachable');
    up(dir);
    const second = await test.pull();
    assert.deepEqual([second.outcome, second.confirmed], ['unchanged', true]);
  });

  it('does not make a worker suspect that confirmed the generation itself', async () => {
    using dir = tempDir();
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { ns: { driver, config: { probe: hookOf(dir) } } } });
    await release(test, 1);
    assert.deepEqual((await test.pull()).confirmed, true);
  });
});

describe('a daemon that a canary cannot reach', () => {
  it('does not refuse a candidate, and is reported in the step', async () => {
    using dir = tempDir();
    const canary = { kind: 'run', hook: hookOf(dir) } as const;
    using test = testHost({
      groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { canary } } },
    });
    await release(test, 1);
    assert.equal((await test.pull()).outcome, 'activated');
    up(dir);
    await release(test, 2, 'bad');
    const refused = await test.pull();
    assert.deepEqual([refused.outcome, refused.generation], ['rejected', 1]);
    assert.deepEqual(
      refusals(test).map(({ serial, code }) => [serial, code]),
      [[2, 'CANARY_FAILED']],
    );
  });
});
