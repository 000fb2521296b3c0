// A daemon that is down at its first deploy, or at an update, has refused nothing: rndc and its kin end with 1 all the same.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { HookConfig } from '../../../src/core/config/config.js';
import { command } from '../../../src/workers/drivers/command.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { driverContext } from '../../kit/workers/driver-context.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

/** A control program that says yes while the daemon lives, and cannot connect while it does not. */
function hostOf(dir: TempDir): TestHost {
  const pidFile = dir.join('pid');
  const script = `test -e ${pidFile} || { echo "connect failed" >&2; exit 1; }`;
  const driver = command.create({ run: ['sh', '-c', script], pidFile, confirms: true }, driverContext());
  return testHost({ groups: { ns: { driver } } });
}

const up = (dir: TempDir): void => writeFileSync(dir.join('pid'), `${process.pid}\n`);
const down = (dir: TempDir): void => rmSync(dir.join('pid'));

describe('a daemon that is reached by a control program', () => {
  it('keeps no policy off at the first deploy while it is down, and is told when it comes', async () => {
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

  it('refuses no release by being down at an update, and blocks nothing', async () => {
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

/** Commands to a daemon that is there while `up` is, and then says no to a policy of "bad". */
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

describe('a daemon that is reached by a loader', () => {
  it('keeps no policy off at the first deploy while it is down, and is loaded when it comes', async () => {
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

  it('refuses no release by being down at an update, and says its no when it is back', async () => {
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

  it('is asked later and later while it says neither yes nor no', async () => {
    using dir = tempDir();
    using test = testHost({ groups: { ns: { config: { load: hookOf(dir) } } } });
    await release(test, 1);
    await test.pull();
    await test.pull();
    await test.pull();
    assert.equal(test.host.ledger.read().workers['ns/load']?.tries, 3);
  });

  it('has no worker notified of what it has not loaded', async () => {
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

describe('a daemon that a probe cannot reach', () => {
  it('is missing, and neither confirmed nor refused; the next probe that sees it confirms it', async () => {
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

  it('is no reason to doubt a worker that has proved the generation itself', async () => {
    using dir = tempDir();
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { ns: { driver, config: { probe: hookOf(dir) } } } });
    await release(test, 1);
    assert.deepEqual((await test.pull()).confirmed, true);
  });
});

describe('a daemon that a canary cannot reach', () => {
  it('refuses no candidate, and says so in its step', async () => {
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
