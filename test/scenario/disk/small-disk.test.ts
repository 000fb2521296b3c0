// A real small file system for the state of a host, which its worker fills: refusals, withdrawals and bake times on a disk
// without a block or an inode. The file system is mounted in a namespace of its own.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { needsMounts, runMounted } from '../../kit/disk/mounted.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

/** @returns what the scenario printed; it has `test`, `publish`, `fill`, `fillInodes`, `empty`, `restart` and `facts` */
async function onSmallDisk(options: string, scenario: string): Promise<unknown> {
  using dir = tempDir();
  const result = await runMounted(
    [`mount -t tmpfs -o ${options},mode=755 none ${dir.path}`],
    `
    import * as fs from 'node:fs';
    process.env.TMPDIR = ${JSON.stringify(dir.path)};
    const { testHost } = await import(at('test/kit/host/test-host.js'));
    const { bakingHost, supervisedDriver } = await import(at('test/kit/host/baking-host.js'));
    const { cycleOn } = await import(at('test/kit/agent/cycle-on.js'));
    const { scriptedDriver, refuses, confirms } = await import(at('test/kit/workers/scripted-driver.js'));
    const { startHost } = await import(at('src/agent/startup/start-host.js'));
    const { recordRestore, restoreProblems } = await import(at('src/agent/state/restore-memory.js'));
    const start = { cycle: 'c-ab', signal: new AbortController().signal };
    const above = process.env.TMPDIR;
    // As a daemon that logs: it takes each block that is freed.
    const fill = () => {
      const file = fs.openSync(above + '/log', 'a');
      try { for (;;) fs.writeSync(file, Buffer.alloc(4096)); } catch {} finally { fs.closeSync(file); }
    };
    let count = 0;
    // Each ends with ENOSPC: that is the aim.
    const fillInodes = () => { try { for (;;) fs.writeFileSync(above + '/n' + count++, ''); } catch {} };
    const empty = () => { for (const name of fs.readdirSync(above)) if (/^(log|n\\d+)$/.test(name)) fs.rmSync(above + '/' + name); };
    const refusing = (onRefusal) => scriptedDriver({
      a: (generation) => {
        if (generation !== 2) return confirms(generation);
        onRefusal();
        return refuses('field 21')();
      },
    });
    const hostOf = (driver, observer = {}) => testHost({ above, observer, groups: { app: { driver } } });
    const current = (host) => fs.readlinkSync(host.paths.current);
    const refused = (host) => host.refusals.read().refusals.map(({ serial, code }) => serial + ' ' + code);
    const problems = (host) => restoreProblems(host, 1).map(({ code, facts }) => code + ' ' + (facts.refused ?? ''));
    const publish = (test, serial, more = {}) =>
      test.publish('access', { 'policy.yaml': 'version: ' + serial + '\\n' }, { serial, ...more });
    const restart = async (test, driver) => {
      const host = test.reopen({ observer: {}, groups: { app: { driver } } });
      await startHost(host, start);
      return host;
    };
    ${scenario}`,
  );
  assert.equal(result.kind === 'exited' && result.exitCode, 0, JSON.stringify(result));
  return JSON.parse('stdout' in result ? result.stdout : 'null');
}

describe('a small disk that its worker fills', { ...needsMounts(), ...longCase }, () => {
  it('is left by a refused policy at once, and a start from it does not activate the policy again', async () => {
    const found = await onSmallDisk(
      'size=8m',
      `
      let isFilling = false;
      const driver = refusing(() => { isFilling = true; fill(); });
      const test = hostOf(driver, { before: ({ op }) => { if (isFilling && !op.startsWith('swap.link')) fill(); } });
      await publish(test, 5); await test.pull(); await startHost(test.host, start);
      await publish(test, 6);
      const { outcome } = await test.pull();
      const there = [outcome, current(test.host), problems(test.host), driver.notified.at(-1)];
      driver.notified.length = 0;
      await test.pull();
      const again = driver.notified.length;
      isFilling = false;
      const killed = await restart(test, driver);
      const started = [current(killed), refused(killed)];
      empty();
      const recorded = [recordRestore(test.host, { active: 1 }), problems(test.host), fs.statSync(test.host.paths.reserve).blocks];
      const after = await restart(test, driver);
      console.log(JSON.stringify({ there, again, started, recorded, after: [current(after), refused(after)] }));`,
    );
    assert.deepEqual(found, {
      there: ['rolled-back', 'generations/1', ['RESTORE_UNRECORDED WORKER_REFUSED'], 'a 1'],
      again: 0,
      started: ['generations/1', ['6 WORKER_REFUSED']],
      recorded: ['recorded', [], 2048],
      after: ['generations/1', ['6 WORKER_REFUSED']],
    });
  });

  it('needs no memory where the reserve is enough, with no block or with no inode left', async () => {
    for (const [size, filled] of [
      ['size=8m', 'fill'],
      ['size=8m,nr_inodes=400', 'fillInodes'],
    ] as const) {
      const found = await onSmallDisk(
        size,
        `
        const driver = refusing(() => ${filled}());
        const test = hostOf(driver);
        await publish(test, 5); await test.pull(); await startHost(test.host, start);
        await publish(test, 6);
        const { outcome } = await test.pull();
        const disk = test.reopen();
        console.log(JSON.stringify([outcome, current(test.host), refused(disk), fs.existsSync(disk.paths.journal)]));`,
      );
      assert.deepEqual(found, ['rolled-back', 'generations/1', ['6 WORKER_REFUSED'], false], filled);
    }
  });

  it('is left by a withdrawn policy whose older release is kept', async () => {
    const found = await onSmallDisk(
      'size=8m',
      `
      const driver = scriptedDriver({ a: confirms });
      const test = hostOf(driver);
      await publish(test, 5); await test.pull(); await startHost(test.host, start);
      await publish(test, 6); await test.pull();
      await publish(test, 5, { withdrawn: [6] });
      fill();
      const result = await test.pull();
      console.log(JSON.stringify([result.outcome, result.problems.map(({ code }) => code), test.read('access/policy.yaml')]));`,
    );
    assert.deepEqual(found, ['activated', [], 'version: 5\n']);
  });

  it('is left by a policy that fails in its bake time', async () => {
    const found = await onSmallDisk(
      'size=8m',
      `
      const driver = supervisedDriver(['a']);
      const baking = bakingHost(driver, { above });
      await startHost(baking.test.host, start);
      await baking.take(5, { f: 'good' });
      await baking.pass(700_000);
      await baking.take(6, { f: 'bad' });
      await baking.pass(4000);
      fill();
      driver.replace('a');
      await baking.pass(20_000);
      console.log(JSON.stringify([baking.active(), baking.restores.map(({ result }) => result.outcome)]));`,
    );
    assert.deepEqual(found, ['good', ['rolled-back']]);
  });
});
