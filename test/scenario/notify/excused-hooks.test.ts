// A command that reached no process refuses nothing. A mistyped pid file makes each command reach none, so this is reported by
// the pull and by health until the command reaches a process.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { noteLateAnswer } from '../../../src/agent/notify/worker-ledger.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import type { HookConfig } from '../../../src/core/config/config.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

/** A command with its exit code in the file `exit-code`; `pid` is the pid file of its process. */
const hookIn = (dir: TempDir, more: Partial<HookConfig> = {}): HookConfig => ({
  ...{ run: ['sh', '-c', `exit $(cat ${dir.join('exit-code')})`], timeoutMs: 60_000, sandbox: 'off' },
  ...more,
});
const setExitCode = (dir: TempDir, exitCode: number): void =>
  writeFileSync(dir.join('exit-code'), String(exitCode));
const writePidFile = (dir: TempDir): void => writeFileSync(dir.join('pid'), `${process.pid}\n`);

const release = (test: TestHost, serial: number): Promise<unknown> =>
  test.publish('access', { 'policy.yaml': `v${serial}` }, { serial });
const warningsOf = async (test: TestHost): Promise<string[]> =>
  (await test.pull()).warnings.map(({ code }) => code);
const health = ({ host }: TestHost): string[] =>
  judgeHostHealth(
    statusReport(host, { version: '', state: 'run', contact: { contact: {} }, problems: [] }),
  ).findings.map(({ level, code }) => `${level} ${code}`);

describe('a probe that reached no process, with a worker that confirmed by itself', () => {
  it('causes a warning of the pull and of health with the name of a mistyped pid file', async () => {
    using dir = tempDir();
    setExitCode(dir, 1);
    const probe = hookIn(dir, { pidFile: dir.join('pdi') });
    using test = testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { probe } } } });
    await release(test, 1);
    const first = await test.pull();
    assert.deepEqual([first.outcome, first.confirmed], ['activated', true]);
    assert.deepEqual(
      first.warnings.map(({ code }) => code),
      ['PROBE_SILENT'],
    );
    assert.match(
      first.warnings[0]?.message ?? '',
      /^ns: it reached no worker \(there is no pid file .*pdi\): exit 1/,
    );
    assert.deepEqual(health(test), ['warning PROBE_SILENT']);
  });

  it('is still a warning at the next pull, until it reaches a process', async () => {
    using dir = tempDir();
    setExitCode(dir, 1);
    const probe = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { probe } } } });
    await release(test, 1);
    await test.pull();
    assert.deepEqual(await warningsOf(test), ['PROBE_SILENT']);
    setExitCode(dir, 0);
    assert.deepEqual([await warningsOf(test), health(test)], [[], []]);
  });

  it('causes a finding and no rollback if it fails once it reaches a process', longCase, async () => {
    using dir = tempDir();
    setExitCode(dir, 1);
    const probe = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { probe } } } });
    await release(test, 1);
    await test.pull();
    setExitCode(dir, 2);
    const pull = await test.pull();
    assert.deepEqual(
      [pull.generation, pull.confirmed, pull.problems.map(({ code }) => code)],
      [1, false, ['PROBE_CHANGED']],
    );
    setExitCode(dir, 0);
    assert.equal((await test.pull()).confirmed, true);
  });

  it('is still a warning after a late answer of its worker', async () => {
    using dir = tempDir();
    setExitCode(dir, 1);
    const probe = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { probe } } } });
    await release(test, 1);
    await test.pull();
    const answer = { group: 'ns', worker: 'a', state: 'confirmed', generation: 1, text: 'again' } as const;
    noteLateAnswer(test.host, { ...answer, atMs: test.clock.nowMs() }, 1);
    assert.deepEqual(health(test), ['warning PROBE_SILENT']);
  });

  it('or deferred, is a warning also if the group accepts unconfirmed workers', longCase, async () => {
    using dir = tempDir();
    setExitCode(dir, 75);
    const config = { probe: hookIn(dir), confirm: 'accept' } as const;
    using test = testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config } } });
    await release(test, 1);
    assert.deepEqual([await warningsOf(test), health(test)], [['PROBE_SILENT'], ['warning PROBE_SILENT']]);
  });

  it('with {worker} causes a warning only for the workers that it did not reach', longCase, async () => {
    using dir = tempDir();
    const run = ['sh', '-c', 'test {worker} = a'] as const;
    const probe = { ...hookIn(dir, { unreachable: { exit: [1] } }), run: [...run] as HookConfig['run'] };
    const driver = scriptedDriver({ a: confirms, b: confirms });
    using test = testHost({ groups: { ns: { driver, config: { probe } } } });
    await release(test, 1);
    const { warnings } = await test.pull();
    assert.deepEqual(
      warnings.map(({ message }) => message),
      ['ns/b: it reached no worker: exit 1'],
    );
  });
});

describe('a canary that reached no process', () => {
  const hostWith = (dir: TempDir): TestHost => {
    const canary = { kind: 'run', hook: hookIn(dir, { unreachable: { exit: [1] } }) } as const;
    return testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { canary } } } });
  };

  it('is a warning of the pull only at a first deploy, which has no process to reach', async () => {
    using dir = tempDir();
    setExitCode(dir, 1);
    using test = hostWith(dir);
    await release(test, 1);
    assert.deepEqual([await warningsOf(test), health(test)], [['CANARY_SILENT'], []]);
  });

  it('is a warning of health too if a worker runs, until it reaches the process', async () => {
    using dir = tempDir();
    setExitCode(dir, 0);
    using test = hostWith(dir);
    await release(test, 1);
    assert.deepEqual(await warningsOf(test), []);
    setExitCode(dir, 1);
    await release(test, 2);
    const update = await test.pull();
    assert.deepEqual(
      [update.outcome, update.warnings.map(({ code }) => code)],
      ['activated', ['CANARY_SILENT']],
    );
    assert.match(update.warnings[0]?.message ?? '', /^ns: its canary: it reached no worker: exit 1/);
    assert.deepEqual([await warningsOf(test), health(test)], [['CANARY_SILENT'], ['warning CANARY_SILENT']]);
    setExitCode(dir, 0);
    await release(test, 3);
    assert.deepEqual([await warningsOf(test), health(test)], [[], []]);
  });
});

describe('a loader that reached no process', () => {
  it('is reported also for an empty group without a minimum, and runs again at the next pull', async () => {
    using dir = tempDir();
    setExitCode(dir, 1);
    const load = hookIn(dir, { unreachable: { exit: [1] } });
    const driver = scriptedDriver({});
    using test = testHost({
      groups: { ns: { driver, config: { load } }, app: { driver: scriptedDriver({ a: confirms }) } },
    });
    await release(test, 1);
    const first = await test.pull();
    assert.deepEqual(
      [first.exitCode, first.confirmed, first.problems.map(({ code }) => code)],
      [4, false, ['WORKER_UNREACHABLE']],
    );
    assert.deepEqual(health(test), ['warning WORKER_UNREACHABLE']);
    setExitCode(dir, 0);
    const second = await test.pull();
    assert.deepEqual([second.outcome, second.confirmed, health(test)], ['unchanged', true, []]);
  });

  it('of such a group causes a rollback if it fails once it reaches a process', async () => {
    using dir = tempDir();
    setExitCode(dir, 0);
    const load = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver: scriptedDriver({}), config: { load } } } });
    await release(test, 1);
    await test.pull();
    setExitCode(dir, 1);
    await release(test, 2);
    assert.equal((await test.pull()).generation, 2);
    setExitCode(dir, 3);
    const third = await test.pull();
    // The loader also refuses the restored generation.
    assert.deepEqual(
      [third.generation, third.problems.some(({ code }) => code === 'LOADER_FAILED')],
      [1, true],
    );
  });
});

describe('a running daemon that no command reaches since a release', () => {
  for (const role of ['load', 'probe'] as const) {
    it(`is lost after three times the timeout of its ${role}, which is critical, and degrades the pull`, async () => {
      using dir = tempDir();
      setExitCode(dir, 0);
      writePidFile(dir);
      const hook = hookIn(dir, { unreachable: { exit: [1] }, pidFile: dir.join('pid') });
      using test = testHost({ groups: { ns: { config: { [role]: hook } } } });
      await release(test, 1);
      assert.equal((await test.pull()).confirmed, true);
      setExitCode(dir, 1);
      await release(test, 2);
      await test.pull();
      assert.deepEqual(health(test), ['warning WORKER_UNREACHABLE']);
      // The probe ran for 59 s of its deadline of 60 s.
      await test.clock.advance(role === 'probe' ? 180_999 : 179_999);
      assert.deepEqual(health(test), ['warning WORKER_UNREACHABLE']);
      await test.clock.advance(1);
      assert.deepEqual(health(test), ['critical WORKER_LOST_AFTER']);
      const pull = await test.pull();
      assert.deepEqual([pull.exitCode, pull.problems[0]?.code], [4, 'WORKER_LOST_AFTER']);
      setExitCode(dir, 0);
      assert.equal((await test.pull()).confirmed, true);
    });
  }

  it('with a loader is lost also if only its driver can see the process', async () => {
    using dir = tempDir();
    setExitCode(dir, 1);
    const driver = scriptedDriver({ a: confirms });
    driver.liveness = async () => 'alive';
    const load = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver, config: { load } } } });
    await release(test, 1);
    await test.pull();
    await test.clock.advance(180_000);
    assert.deepEqual(health(test), ['critical WORKER_LOST_AFTER']);
  });

  it('is only unreachable if its pid file names no process', async () => {
    using dir = tempDir();
    setExitCode(dir, 1);
    const load = hookIn(dir, { pidFile: dir.join('pid') });
    using test = testHost({ groups: { ns: { config: { load } } } });
    await release(test, 1);
    await test.pull();
    await test.clock.advance(300_000);
    assert.deepEqual(health(test), ['warning WORKER_UNREACHABLE']);
  });
});
