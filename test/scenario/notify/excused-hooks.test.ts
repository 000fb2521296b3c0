// A command that reached nobody refuses nothing, and a mistyped pid file lets every command reach nobody: so whoever is
// excused is seen, in the result and in health, until it is heard.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { noteLateAnswer } from '../../../src/agent/notify/worker-ledger.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import type { HookConfig } from '../../../src/core/config/config.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

/** Its exit code is in `says`; it speaks to the process of `pid`. */
const hookIn = (dir: TempDir, more: Partial<HookConfig> = {}): HookConfig => ({
  ...{ run: ['sh', '-c', `exit $(cat ${dir.join('says')})`], timeoutMs: 60_000, sandbox: 'off' },
  ...more,
});
const says = (dir: TempDir, exitCode: number): void => writeFileSync(dir.join('says'), String(exitCode));
const lives = (dir: TempDir): void => writeFileSync(dir.join('pid'), `${process.pid}\n`);

const release = (test: TestHost, serial: number): Promise<unknown> =>
  test.publish('access', { 'policy.yaml': `v${serial}` }, { serial });
const warningsOf = async (test: TestHost): Promise<string[]> =>
  (await test.pull()).warnings.map(({ code }) => code);
const health = ({ host }: TestHost): string[] =>
  judgeHostHealth(
    statusReport(host, { version: '', state: 'run', contact: { contact: {} }, problems: [] }),
  ).findings.map(({ level, code }) => `${level} ${code}`);

describe('a probe that reached nobody, beside a worker that vouches for itself', () => {
  it('with a mistyped pid file is a warning of the pull and of health, which names the file', async () => {
    using dir = tempDir();
    says(dir, 1);
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

  it('stays one at the next pull, until it is heard', async () => {
    using dir = tempDir();
    says(dir, 1);
    const probe = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { probe } } } });
    await release(test, 1);
    await test.pull();
    assert.deepEqual(await warningsOf(test), ['PROBE_SILENT']);
    says(dir, 0);
    assert.deepEqual([await warningsOf(test), health(test)], [[], []]);
  });

  it('that says no once it is heard is a finding, and takes nothing back', async () => {
    using dir = tempDir();
    says(dir, 1);
    const probe = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { probe } } } });
    await release(test, 1);
    await test.pull();
    says(dir, 2);
    const pull = await test.pull();
    assert.deepEqual(
      [pull.generation, pull.confirmed, pull.problems.map(({ code }) => code)],
      [1, false, ['PROBE_CHANGED']],
    );
    says(dir, 0);
    assert.equal((await test.pull()).confirmed, true);
  });

  it('is not heard by what its worker says later', async () => {
    using dir = tempDir();
    says(dir, 1);
    const probe = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { probe } } } });
    await release(test, 1);
    await test.pull();
    const answer = { group: 'ns', worker: 'a', state: 'confirmed', generation: 1, text: 'again' } as const;
    noteLateAnswer(test.host, { ...answer, atMs: test.clock.nowMs() }, 1);
    assert.deepEqual(health(test), ['warning PROBE_SILENT']);
  });

  it('or said "not now", is seen also where nobody asks for proofs', async () => {
    using dir = tempDir();
    says(dir, 75);
    const config = { probe: hookIn(dir), confirm: 'accept' } as const;
    using test = testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config } } });
    await release(test, 1);
    assert.deepEqual([await warningsOf(test), health(test)], [['PROBE_SILENT'], ['warning PROBE_SILENT']]);
  });

  it('and asks each worker, is a warning for those alone that it did not reach', async () => {
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

describe('a canary that reached nobody', () => {
  const hostWith = (dir: TempDir): TestHost => {
    const canary = { kind: 'run', hook: hookIn(dir, { unreachable: { exit: [1] } }) } as const;
    return testHost({ groups: { ns: { driver: scriptedDriver({ a: confirms }), config: { canary } } } });
  };

  it('is a warning of the pull; at a first deploy there is nobody to reach, and no news tomorrow', async () => {
    using dir = tempDir();
    says(dir, 1);
    using test = hostWith(dir);
    await release(test, 1);
    assert.deepEqual([await warningsOf(test), health(test)], [['CANARY_SILENT'], []]);
  });

  it('beside a worker that is there is a warning of health too, until it is heard', async () => {
    using dir = tempDir();
    says(dir, 0);
    using test = hostWith(dir);
    await release(test, 1);
    assert.deepEqual(await warningsOf(test), []);
    says(dir, 1);
    await release(test, 2);
    const update = await test.pull();
    assert.deepEqual(
      [update.outcome, update.warnings.map(({ code }) => code)],
      ['activated', ['CANARY_SILENT']],
    );
    assert.match(update.warnings[0]?.message ?? '', /^ns: its canary: it reached no worker: exit 1/);
    assert.deepEqual([await warningsOf(test), health(test)], [['CANARY_SILENT'], ['warning CANARY_SILENT']]);
    says(dir, 0);
    await release(test, 3);
    assert.deepEqual([await warningsOf(test), health(test)], [[], []]);
  });
});

describe('a loader that reached nobody', () => {
  it('of a group that may be empty, and is, is seen all the same, and runs again at the next pull', async () => {
    using dir = tempDir();
    says(dir, 1);
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
    says(dir, 0);
    const second = await test.pull();
    assert.deepEqual([second.outcome, second.confirmed, health(test)], ['unchanged', true, []]);
  });

  it('of such a group says its no when it is reached', async () => {
    using dir = tempDir();
    says(dir, 0);
    const load = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver: scriptedDriver({}), config: { load } } } });
    await release(test, 1);
    await test.pull();
    says(dir, 1);
    await release(test, 2);
    assert.equal((await test.pull()).generation, 2);
    says(dir, 3);
    const third = await test.pull();
    // It refuses the one before too: what is back cannot be loaded either.
    assert.deepEqual(
      [third.generation, third.problems.some(({ code }) => code === 'LOADER_FAILED')],
      [1, true],
    );
  });
});

describe('a daemon that lives, and that no command reaches since a release', () => {
  for (const role of ['load', 'probe'] as const) {
    it(`is lost after three times the time of its ${role}, which is critical; the pull is degraded`, async () => {
      using dir = tempDir();
      says(dir, 0);
      lives(dir);
      const hook = hookIn(dir, { unreachable: { exit: [1] }, pidFile: dir.join('pid') });
      using test = testHost({ groups: { ns: { config: { [role]: hook } } } });
      await release(test, 1);
      assert.equal((await test.pull()).confirmed, true);
      says(dir, 1);
      await release(test, 2);
      await test.pull();
      assert.deepEqual(health(test), ['warning WORKER_UNREACHABLE']);
      // The probe was asked for 59 s of its deadline of 60 s.
      await test.clock.advance(role === 'probe' ? 180_999 : 179_999);
      assert.deepEqual(health(test), ['warning WORKER_UNREACHABLE']);
      await test.clock.advance(1);
      assert.deepEqual(health(test), ['critical WORKER_LOST_AFTER']);
      const pull = await test.pull();
      assert.deepEqual([pull.exitCode, pull.problems[0]?.code], [4, 'WORKER_LOST_AFTER']);
      says(dir, 0);
      assert.equal((await test.pull()).confirmed, true);
    });
  }

  it('is lost behind a loader also where only its driver can see it', async () => {
    using dir = tempDir();
    says(dir, 1);
    const driver = scriptedDriver({ a: confirms });
    driver.liveness = async () => 'alive';
    const load = hookIn(dir, { unreachable: { exit: [1] } });
    using test = testHost({ groups: { ns: { driver, config: { load } } } });
    await release(test, 1);
    await test.pull();
    await test.clock.advance(180_000);
    assert.deepEqual(health(test), ['critical WORKER_LOST_AFTER']);
  });

  it('is only down where its pid file names nobody', async () => {
    using dir = tempDir();
    says(dir, 1);
    const load = hookIn(dir, { pidFile: dir.join('pid') });
    using test = testHost({ groups: { ns: { config: { load } } } });
    await release(test, 1);
    await test.pull();
    await test.clock.advance(300_000);
    assert.deepEqual(health(test), ['warning WORKER_UNREACHABLE']);
  });
});
