// A repeated probe between moves, on a simulated host: which workers become suspect, which are notified, and that neither a
// restart nor a rollback follows.
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
import { entryOf, probe, settle, settledWorld, type World } from '../../../kit/agent/settled-world.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver, unreachable } from '../../../kit/workers/scripted-driver.js';

interface Scene extends Disposable, World {
  /** Sets the exit code of the probe from now on. */
  readonly setExitCode: (exitCode: number) => void;
  /** Runs the probe this many times, 30 s apart, with a reconcile after each. */
  readonly ask: (times?: number, host?: Host) => Promise<RepeatedProbe>;
  readonly refusals: string[];
}

async function scene(
  workers: Parameters<typeof scriptedDriver>[0],
  config: Partial<WorkerGroupConfig> = {},
): Promise<Scene> {
  const dir = tempDir();
  const setExitCode = (exitCode: number): void => fs.writeFileSync(dir.join('exit-code'), String(exitCode));
  setExitCode(0);
  const made = await settledWorld(workers, { ...probe(`exit $(cat '${dir.join('exit-code')}')`), ...config });
  const refusals: string[] = [];
  const onRefused = async (error: Error & { code?: string }): Promise<void> =>
    void refusals.push(`${error.code}`);
  const ask = async (times = 1, host = made.test.host): Promise<RepeatedProbe> => {
    let last: RepeatedProbe = { proven: [], changed: [] };
    for (let at = 0; at < times; at++) {
      await made.test.clock.advance(30_000);
      last = await askOnce(host);
      await settle(host, { ignoreBackoff: false, onRefused });
    }
    return last;
  };
  const dispose = (): void => {
    made.test[Symbol.dispose]();
    dir[Symbol.dispose]();
  };
  return { ...made, setExitCode, ask, refusals, [Symbol.dispose]: dispose };
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

describe('a repeated probe', () => {
  it('ends the confirmation with its first failure, and causes no notification yet', async () => {
    using app = await scene({ a: confirms });
    const { test, driver } = app;
    assert.equal(areWorkersConfirmed(test.host), true);
    app.setExitCode(1);
    const { changed } = await app.ask();
    assert.deepEqual([areWorkersConfirmed(test.host), codesOf(test)], [false, ['PROBE_CHANGED']]);
    assert.deepEqual(changed, [{ key: 'app/a', text: 'app: exit 1', doubted: 'yes' }]);
    assert.deepEqual((await app.ask()).changed, [], 'the second failure is no change');
    assert.deepEqual(driver.notified, []);
    const pull = await test.pull();
    assert.deepEqual([pull.outcome, pull.exitCode, pull.confirmed], ['degraded', 4, false]);
  });

  it('causes a notification of all workers after the third failure, which only a passed probe confirms', async () => {
    using app = await scene({ a: confirms, b: confirms });
    app.setExitCode(1);
    await app.ask(3);
    assert.deepEqual(
      [app.driver.notified, stateOf(app)],
      [['a 1', 'b 1'], 'notified'],
      'the probe still fails',
    );
    app.setExitCode(0);
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

  it('confirms a worker at once if it passes after the notification', async () => {
    using app = await scene({ a: confirms });
    app.driver.workers.set('a', (generation) => {
      app.setExitCode(0);
      return confirms(generation);
    });
    app.setExitCode(1);
    await app.ask(3);
    assert.deepEqual([app.driver.notified, stateOf(app), codesOf(app.test)], [['a 1'], 'confirmed', []]);
  });

  it('is retried after the notification only until its next repetition, so that a bad release is replaced in time', async () => {
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
      const made = await settledWorld({ a: confirms }, { probe: { ...rest, run, ...times } });
      using test = made.test;
      fs.writeFileSync(dir.join('code'), '1');
      for (let wrong = 0; wrong < 3; wrong++) await askOnce(test.host);
      fs.writeFileSync(dir.join('asked'), '');
      await settle(test.host, { ignoreBackoff: false });
      assert.deepEqual(made.driver.notified, ['a 1']);
      assert.equal(fs.readFileSync(dir.join('asked'), 'utf8').length, attempts, `${everyMs} ${timeoutMs}`);
    }
  });

  it('causes no restart, no move and no refusal', async () => {
    using app = await scene({ a: confirms }, { restartWhen: ['**'] });
    Object.assign(app.driver, { restart: async () => assert.fail('restarted') });
    await app.test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    for (const answer of [refuses('no'), unreachable]) {
      app.driver.workers.set('a', answer);
      app.setExitCode(1);
      await app.ask(12);
    }
    assert.deepEqual([app.refusals, readActive(app.test.host.paths)?.number], [[], 1]);
    assert.deepEqual(app.driver.notified.slice(0, 1), ['a 1']);
  });

  it('causes five notifications in a generation, and then none', async () => {
    using app = await scene({ a: confirms });
    app.setExitCode(1);
    await app.ask(60);
    assert.equal(app.driver.notified.length, 5);
    app.setExitCode(0);
    await app.ask();
    assert.deepEqual(codesOf(app.test), []);
    app.setExitCode(1);
    await app.ask(10, app.test.reopen());
    assert.equal(app.driver.notified.length, 5, 'across a restart of the agent too');
    await app.test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    app.setExitCode(0);
    await app.test.pull();
    app.setExitCode(1);
    await app.ask(3);
    assert.deepEqual(app.driver.notified.slice(5), ['a 2', 'a 2'], 'another generation has its own five');
  });

  it('keeps its counts across a restart of the agent', async () => {
    using app = await scene({ a: confirms });
    app.setExitCode(1);
    await app.ask(2);
    const restarted = app.test.reopen();
    await app.ask(1, restarted);
    assert.deepEqual(app.driver.notified, ['a 1']);
  });

  it('is a warning and keeps the confirmations if it gives no verdict', async () => {
    using app = await scene({ a: confirms });
    for (const exitCode of [99, 75, 40]) {
      app.setExitCode(exitCode);
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
    app.setExitCode(0);
    await app.ask();
    assert.deepEqual((await app.test.pull()).warnings, []);
  });

  it('runs once at each repetition, whatever its `retry` is', async () => {
    using dir = tempDir();
    const asked = dir.join('asked');
    using app = await scene({ a: confirms });
    const { config } = app.test.host.groups[0]!;
    Object.assign(config, { probe: { ...probe(`echo >> '${asked}'; exit 1`).probe, retry: 5 } });
    await app.ask();
    assert.equal(fs.readFileSync(asked, 'utf8'), '\n');
  });

  it('accepts the generation that its worker was notified of, if later moves did not change the files of the group', async () => {
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

  it('runs for each worker with {worker}, and makes only the failed one suspect', async () => {
    using app = await scene({ a: confirms, b: confirms });
    const { config } = app.test.host.groups[0]!;
    Object.assign(config, probe('test {worker} = a'));
    const { proven } = await app.ask(3);
    assert.deepEqual([proven, app.driver.notified], [['app/a'], ['b 1']]);
    assert.deepEqual([stateOf(app), stateOf(app, 'app/b')], ['confirmed', 'notified']);
  });

  it('does not run for a group without members', async () => {
    using app = await scene({ a: confirms }, {});
    app.setExitCode(1);
    app.driver.workers.delete('a');
    await settle(app.test.host);
    assert.deepEqual(await app.ask(), { proven: [], changed: [] });
    assert.deepEqual(codesOf(app.test), [], 'another rule reports the departed worker');
  });

  it('stays a finding in a group without a reset', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('exit-code'), '0');
    using test = testHost({
      groups: { nft: { config: probe(`exit $(cat '${join(dir.path, 'exit-code')}')`) } },
    });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    assert.equal(areWorkersConfirmed(test.host), true);
    fs.writeFileSync(dir.join('exit-code'), '1');
    for (let at = 0; at < 5; at++) await askOnce(test.host);
    assert.deepEqual([codesOf(test), entryOf(test, 'nft/probe')?.state], [['PROBE_CHANGED'], 'notified']);
  });
});
