// A probe that is asked again between activations, on a host: whom it doubts, who is notified because of it, and what
// never follows from it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readActive } from '../../../../src/agent/generations/generations.js';
import { openStagingArea } from '../../../../src/agent/job/staging-area.js';
import { pendingProblems } from '../../../../src/agent/notify/pending-problems.js';
import { type RepeatedProbe, repeatAndNoteProbe } from '../../../../src/agent/notify/repeat-probe.js';
import { areWorkersConfirmed } from '../../../../src/agent/state/confirmed-workers.js';
import type { Host } from '../../../../src/agent/state/host.js';
import type { WorkerGroupConfig } from '../../../../src/core/config/config.js';
import { entryOf, probe, settle, type World, world } from '../../../kit/agent/settled-world.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver, unreachable } from '../../../kit/workers/scripted-driver.js';

interface Scene extends Disposable, World {
  /** What the probe says from now on: an exit code. */
  readonly says: (exitCode: number) => void;
  /** So many answers, 30 s apart; what is due is done between them. */
  readonly ask: (times?: number, host?: Host) => Promise<RepeatedProbe>;
  readonly refusals: string[];
}

async function scene(
  workers: Parameters<typeof scriptedDriver>[0],
  config: Partial<WorkerGroupConfig> = {},
): Promise<Scene> {
  const dir = tempDir();
  const says = (exitCode: number): void => fs.writeFileSync(dir.join('says'), String(exitCode));
  says(0);
  const made = await world(workers, { ...probe(`exit $(cat '${dir.join('says')}')`), ...config });
  const refusals: string[] = [];
  const onRefused = async (error: Error & { code?: string }): Promise<void> =>
    void refusals.push(`${error.code}`);
  const ask = async (times = 1, host = made.test.host): Promise<RepeatedProbe> => {
    let said: RepeatedProbe = { proven: [], changed: [] };
    for (let at = 0; at < times; at++) {
      await made.test.clock.advance(30_000);
      said = await askOnce(host);
      await settle(host, { ignoreBackoff: false, onRefused });
    }
    return said;
  };
  const dispose = (): void => {
    made.test[Symbol.dispose]();
    dir[Symbol.dispose]();
  };
  return { ...made, says, ask, refusals, [Symbol.dispose]: dispose };
}

async function askOnce(host: Host): Promise<RepeatedProbe> {
  const active = readActive(host.paths);
  const [group] = host.groups;
  assert.ok(active && group);
  const area = openStagingArea(host.paths, host.durable, 'c-probe');
  const target = { generation: active.number, path: active.path };
  try {
    return await repeatAndNoteProbe(host, group, {
      target,
      staging: area.path(),
      signal: new AbortController().signal,
    });
  } finally {
    area.remove(host.log);
  }
}

const codesOf = ({ host }: TestHost): string[] => pendingProblems(host).map((one) => one.code);
const stateOf = ({ test }: World, key = 'app/a'): string | undefined => entryOf(test, key)?.state;

describe('a probe that is asked again', () => {
  it('makes a finding of its first wrong answer: nothing is confirmed any more, and nobody is notified yet', async () => {
    using app = await scene({ a: confirms });
    const { test, driver } = app;
    assert.equal(areWorkersConfirmed(test.host), true);
    app.says(1);
    const { changed } = await app.ask();
    assert.deepEqual([areWorkersConfirmed(test.host), codesOf(test)], [false, ['PROBE_CHANGED']]);
    assert.deepEqual(changed, [{ key: 'app/a', text: 'app: exit 1', doubted: 'yes' }]);
    assert.deepEqual((await app.ask()).changed, [], 'the second one is no news');
    assert.deepEqual(driver.notified, []);
    const pull = await test.pull();
    assert.deepEqual([pull.outcome, pull.exitCode, pull.confirmed], ['degraded', 4, false]);
  });

  it('has everybody notified after the third, who are proved by the probe and by nothing else', async () => {
    using app = await scene({ a: confirms, b: confirms });
    app.says(1);
    await app.ask(3);
    assert.deepEqual([app.driver.notified, stateOf(app)], [['a 1', 'b 1'], 'notified'], 'it says no still');
    app.says(0);
    const { proven, changed } = await app.ask();
    assert.deepEqual(
      [proven, stateOf(app), stateOf(app, 'app/b')],
      [['app/a', 'app/b'], 'confirmed', 'confirmed'],
    );
    assert.deepEqual(
      changed.map((one) => one.doubted),
      ['no', 'no'],
    );
    assert.deepEqual([areWorkersConfirmed(app.test.host), codesOf(app.test)], [true, []]);
  });

  it('that is right once a worker was notified has done with it at once', async () => {
    using app = await scene({ a: confirms });
    app.driver.workers.set('a', (generation) => {
      app.says(0);
      return confirms(generation);
    });
    app.says(1);
    await app.ask(3);
    assert.deepEqual([app.driver.notified, stateOf(app), codesOf(app.test)], [['a 1'], 'confirmed', []]);
  });

  it('is asked after the notification only until it is repeated, so that a bad release is replaced in time', async () => {
    const { probe: usual } = probe('');
    for (const { everyMs, timeoutMs, deadlineMs, attempts } of [
      { everyMs: 5000, timeoutMs: 1000, deadlineMs: 60_000, attempts: 5 },
      // An attempt may take longer than the time until the repeated probe.
      { everyMs: 5000, timeoutMs: 6000, deadlineMs: 60_000, attempts: 1 },
      { everyMs: 30_000, timeoutMs: 1000, deadlineMs: 2000, attempts: 2 },
    ]) {
      using dir = tempDir();
      fs.writeFileSync(dir.join('code'), '0');
      const run = ['sh', '-c', `echo >>'${dir.join('asked')}'; exit $(cat '${dir.join('code')}')`] as const;
      const { retry: _, ...rest } = usual ?? assert.fail();
      const times = { timeoutMs, deadlineMs, gapMs: 1000, everyMs };
      const made = await world({ a: confirms }, { probe: { ...rest, run, ...times } });
      using test = made.test;
      fs.writeFileSync(dir.join('code'), '1');
      for (let wrong = 0; wrong < 3; wrong++) await askOnce(test.host);
      fs.writeFileSync(dir.join('asked'), '');
      await settle(test.host, { ignoreBackoff: false });
      assert.deepEqual(made.driver.notified, ['a 1']);
      assert.equal(fs.readFileSync(dir.join('asked'), 'utf8').length, attempts, `${everyMs} ${timeoutMs}`);
    }
  });

  it('never has anybody restarted, never moves the policy, and hands on no refusal', async () => {
    using app = await scene({ a: confirms }, { restartWhen: ['**'] });
    Object.assign(app.driver, { restart: async () => assert.fail('restarted') });
    await app.test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    for (const says of [refuses('no'), unreachable]) {
      app.driver.workers.set('a', says);
      app.says(1);
      await app.ask(12);
    }
    assert.deepEqual([app.refusals, readActive(app.test.host.paths)?.number], [[], 1]);
    assert.deepEqual(app.driver.notified.slice(0, 1), ['a 1']);
  });

  it('notifies five times in a generation, and then says that somebody else changes it', async () => {
    using app = await scene({ a: confirms });
    app.says(1);
    await app.ask(60);
    assert.equal(app.driver.notified.length, 5);
    app.says(0);
    await app.ask();
    assert.deepEqual(codesOf(app.test), []);
    app.says(1);
    await app.ask(10, app.test.reopen());
    assert.equal(app.driver.notified.length, 5, 'across a restart of the agent too');
    await app.test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    app.says(0);
    await app.test.pull();
    app.says(1);
    await app.ask(3);
    assert.deepEqual(app.driver.notified.slice(5), ['a 2', 'a 2'], 'another generation has its own five');
  });

  it('keeps its counts across a restart of the agent', async () => {
    using app = await scene({ a: confirms });
    app.says(1);
    await app.ask(2);
    const restarted = app.test.reopen();
    await app.ask(1, restarted);
    assert.deepEqual(app.driver.notified, ['a 1']);
  });

  it('that gives no verdict is a warning, and takes nothing from anybody', async () => {
    using app = await scene({ a: confirms });
    for (const exitCode of [99, 75, 40]) {
      app.says(exitCode);
      await app.ask(4);
      assert.deepEqual(
        [stateOf(app), areWorkersConfirmed(app.test.host), codesOf(app.test)],
        ['confirmed', true, []],
      );
      const { warnings } = await app.test.pull();
      assert.deepEqual(
        warnings.map((one) => one.code),
        ['PROBE_SILENT'],
      );
    }
    app.says(0);
    await app.ask();
    assert.deepEqual((await app.test.pull()).warnings, []);
  });

  it('is asked once each time, whatever it is tried in an activation: its next turn comes', async () => {
    using dir = tempDir();
    const asked = dir.join('asked');
    using app = await scene({ a: confirms });
    const { config } = app.test.host.groups[0]!;
    Object.assign(config, { probe: { ...probe(`echo >> '${asked}'; exit 1`).probe, retry: 5 } });
    await app.ask();
    assert.equal(fs.readFileSync(asked, 'utf8'), '\n');
  });

  it('accepts the generation that its worker was notified of, where later moves did not change what the group uses', async () => {
    using dir = tempDir();
    const shown = dir.join('shown');
    const driver = scriptedDriver({ a: confirms });
    const config = { uses: ['access'], ...probe(`test $(cat '${shown}') = {current}`) };
    using test = testHost({
      bundles: [{ name: 'access' }, { name: 'zones' }],
      groups: { app: { driver, config } },
    });
    await test.publish('access', { f: '1' }, { serial: 1 });
    await test.publish('zones', { z: '1' }, { serial: 1 });
    const paths = [1, 2].map((number) => join(test.host.paths.generations, `${number}`));
    fs.writeFileSync(shown, `${paths[0]}`);
    await test.pull();
    await test.publish('zones', { z: '2' }, { serial: 2 });
    await test.pull();
    assert.deepEqual([readActive(test.host.paths)?.number, entryOf(test, 'app/a')?.wanted], [2, 1]);
    for (const path of paths) {
      fs.writeFileSync(shown, path);
      assert.deepEqual(await askOnce(test.host), { proven: ['app/a'], changed: [] }, path);
    }
    fs.writeFileSync(shown, 'another');
    assert.equal((await askOnce(test.host)).changed.length, 1);
  });

  it('asks each worker where it names one, and doubts that one alone', async () => {
    using app = await scene({ a: confirms, b: confirms });
    const { config } = app.test.host.groups[0]!;
    Object.assign(config, probe('test {worker} = a'));
    const { proven } = await app.ask(3);
    assert.deepEqual([proven, app.driver.notified], [['app/a'], ['b 1']]);
    assert.deepEqual([stateOf(app), stateOf(app, 'app/b')], ['confirmed', 'notified']);
  });

  it('asks about nobody where nobody is there', async () => {
    using app = await scene({ a: confirms }, {});
    app.says(1);
    app.driver.workers.delete('a');
    await settle(app.test.host);
    assert.deepEqual(await app.ask(), { proven: [], changed: [] });
    assert.deepEqual(codesOf(app.test), [], 'that it is gone is said by another rule');
  });

  it('of a group that nobody can notify is a finding, and stays one', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('says'), '0');
    using test = testHost({ groups: { nft: { config: probe(`exit $(cat '${join(dir.path, 'says')}')`) } } });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    assert.equal(areWorkersConfirmed(test.host), true);
    fs.writeFileSync(dir.join('says'), '1');
    for (let at = 0; at < 5; at++) await askOnce(test.host);
    assert.deepEqual([codesOf(test), entryOf(test, 'nft/probe')?.state], [['PROBE_CHANGED'], 'notified']);
  });
});
