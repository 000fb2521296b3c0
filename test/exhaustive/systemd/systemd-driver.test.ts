// The systemd driver with a real systemd: the responses of systemctl for units that reload, refuse, hang, are dead, masked or
// absent, and whether the driver's verdict is right.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { defaultPath } from '../../../src/platform/process/run-command.js';
import type { Driver } from '../../../src/workers/contract/driver.js';
import { systemd } from '../../../src/workers/drivers/systemd.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bootSystemd, machineDisk, needsBoot } from '../../kit/programs/booted-systemd.js';
import type { BootedSystemd } from '../../kit/programs/machine-boot.js';
import { driverContext } from '../../kit/workers/driver-context.js';

const reset = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 20_000 };

/** Instances of one template; a file of the instance's name is what its reload runs. */
const template = `[Service]
ExecStart=/bin/sh -c 'test ! -e /etc/broken/%i && exec sleep infinity'
ExecReload=/bin/sh /etc/reload/%i
TimeoutStartSec=60s
`;
const reloads: Readonly<Record<string, string>> = {
  good: 'echo reloaded >>/var/log/good.reloads',
  no: 'echo "no such zone" >&2; exit 1',
  hangs: 'sleep 100',
  other: 'sleep 100',
  slow: 'content=$(cat /etc/content); sleep 2; echo $content >/var/log/slow.uses',
  dies: 'kill -KILL $MAINPID; sleep 0.3',
};

type MakeDriver = (pattern: string, options?: object) => Driver;

/** Creates drivers that run here, with their systemctl in the machine. */
function driversFor(machine: BootedSystemd, folder: string): MakeDriver {
  const quoted = machine.enter.map((argument) => `'${argument}'`).join(' ');
  writeFileSync(`${folder}/systemctl`, `#!/bin/sh\nexec ${quoted} systemctl "$@"\n`, { mode: 0o755 });
  const context = driverContext({ programPath: `${folder}:${defaultPath}` });
  return (pattern, more = {}) => systemd.create({ systemd: pattern, ...more }, context);
}

describe('the systemd driver and a real systemd', { timeout: 120_000, ...needsBoot() }, () => {
  it('reports the true state of each unit', async (t) => {
    using dir = tempDir();
    using programs = tempDir();
    const disk = machineDisk(dir.path);
    disk.write('/etc/systemd/system/w@.service', template);
    disk.write(
      '/etc/systemd/system/late@.service',
      '[Service]\nType=notify\nExecStart=/bin/sleep infinity\nTimeoutStartSec=60s\n',
    );
    for (const [name, script] of Object.entries(reloads)) disk.write(`/etc/reload/${name}`, `${script}\n`);
    disk.write('/etc/broken/.keep', '');
    await using machine = await bootSystemd(disk);
    const driver = driversFor(machine, programs.path);
    // A unit in /etc cannot be masked.
    const plain = '[Service]\nExecStart=/bin/sleep infinity\nExecReload=/bin/true\n';
    await machine.ok(
      'sh',
      '-c',
      `printf '${plain}' >/run/systemd/system/plain.service && systemctl daemon-reload`,
    );
    const start = (...units: string[]): Promise<string> => machine.ok('systemctl', 'start', ...units);
    const unit = (name: string): string => `w@${name}.service`;
    const invocation = (name: string): Promise<string> => machine.show(name, 'InvocationID');

    await t.test('lists the running and failed units of a pattern only', async () => {
      const all = driver('w@*.service');
      assert.deepEqual(await all.members(), []);
      await start(unit('good'), unit('no'), unit('hangs'), 'plain.service');
      disk.write('/etc/broken/dead', '');
      await machine.run('systemctl', 'start', unit('dead'));
      await machine.becomes(unit('dead'), 'ActiveState', 'failed');
      await machine.ok('systemctl', 'stop', unit('no'));
      assert.deepEqual(await all.members(), [unit('dead'), unit('good'), unit('hangs')]);
      await start(unit('no'));
      assert.deepEqual(await driver('plain.service').members(), ['plain.service']);
      assert.deepEqual(await driver('absent.service').members(), []);
      assert.deepEqual(await driver('w@[gn]o*.service').members(), [unit('good'), unit('no')]);
    });

    await t.test(
      'reloads, and claims only what the command proves, unless the configuration confirms it',
      async () => {
        const before = await invocation(unit('good'));
        const notified = await driver('w@*.service').reset(unit('good'), reset);
        assert.equal(notified.kind, 'notified', notified.text);
        assert.match(notified.text, /as good as the exit code of: \/bin\/sh \/etc\/reload\/good$/);
        const vouched = await driver('w@*.service', { confirms: true }).reset(unit('good'), reset);
        assert.equal(vouched.kind, 'confirmed', vouched.text);
        assert.equal(await machine.ok('cat', '/var/log/good.reloads'), 'reloaded\nreloaded');
        assert.equal(await invocation(unit('good')), before);
        assert.equal(await driver('w@*.service').identity?.(unit('good')), before);
      },
    );

    await t.test('treats a failed reload as a refusal, though the unit still runs', async () => {
      const answer = await driver('w@*.service', { confirms: true }).reset(unit('no'), reset);
      assert.equal(answer.kind, 'refused', answer.text);
      assert.equal(await machine.show(unit('no'), 'ActiveState'), 'active');
    });

    await t.test('has no verdict for a reload that hangs, however long systemd waits', async () => {
      const answer = await driver('w@*.service').reset(unit('hangs'), { ...reset, timeoutMs: 1500 });
      assert.equal(answer.kind, 'unreachable', answer.text);
      assert.equal(await machine.show(unit('hangs'), 'ActiveState'), 'reloading');
      assert.equal(await driver('w@*.service').liveness?.(unit('hangs')), 'alive');
    });

    await t.test('has no verdict when another process stops the unit', async () => {
      await start(unit('other'));
      const asked = driver('w@*.service').reset(unit('other'), reset);
      await machine.becomes(unit('other'), 'ActiveState', 'reloading');
      await machine.ok('systemctl', 'stop', unit('other'));
      const answer = await asked;
      assert.equal(answer.kind, 'unreachable', answer.text);
      assert.match(answer.text, /canceled/);
    });

    await t.test('does not take the end of an earlier reload for the end of its own', async () => {
      disk.write('/etc/content', 'old\n');
      await start(unit('slow'));
      const all = driver('w@*.service', { confirms: true });
      const late = await all.reset(unit('slow'), { ...reset, timeoutMs: 2000 });
      assert.equal(late.kind, 'unreachable', late.text);
      disk.write('/etc/content', 'new\n');
      assert.equal((await all.reset(unit('slow'), reset)).kind, 'confirmed');
      assert.equal(await machine.ok('cat', '/var/log/slow.uses'), 'new');
    });

    await t.test('does not count a unit that died of its reload as notified', async () => {
      await start(unit('dies'));
      const answer = await driver('w@*.service', { confirms: true }).reset(unit('dies'), reset);
      assert.notEqual(answer.kind, 'confirmed', answer.text);
      await machine.becomes(unit('dies'), 'ActiveState', 'failed');
      assert.equal(await driver('w@*.service').liveness?.(unit('dies')), 'dead');
    });

    await t.test('does not notify a dead, masked, absent or starting unit', async () => {
      await machine.ok('systemctl', 'mask', 'plain.service');
      assert.equal(await machine.show('plain.service', 'ActiveState'), 'active', 'and it goes on');
      const before = await invocation('plain.service');
      await machine.ok('systemctl', 'try-restart', 'plain.service');
      assert.equal(await invocation('plain.service'), before, 'systemctl reported success without an effect');
      await machine.ok('systemctl', 'start', '--no-block', 'late@1.service');
      for (const action of ['reload', 'restart', 'try-restart', 'try-reload-or-restart']) {
        for (const name of [
          unit('dead'),
          unit('never'),
          'plain.service',
          'absent.service',
          'late@1.service',
        ]) {
          const answer = await driver('w@*.service', { action }).reset(name, reset);
          assert.equal(answer.kind, 'unreachable', `${action} ${name}: ${answer.text}`);
        }
      }
      assert.equal(await machine.show(unit('never'), 'ActiveState'), 'inactive', 'and starts no unit');
    });

    await t.test('restarts a unit to a new process, without a claim about what it has read', async () => {
      for (const action of ['restart', 'try-restart', 'try-reload-or-restart']) {
        const before = await invocation(unit('good'));
        const answer = await driver('w@*.service', { action }).reset(unit('good'), reset);
        assert.equal(answer.kind, 'notified', answer.text);
        const isAnother = (await invocation(unit('good'))) !== before;
        assert.equal(isAnother, action !== 'try-reload-or-restart', `${action}: ${answer.text}`);
      }
    });

    await t.test('starts a dead unit only for a restart, and reports the failure of one', async () => {
      const all = driver('w@*.service');
      assert.equal((await all.restart?.(unit('dies'), reset))?.kind, 'notified');
      assert.equal(await machine.show(unit('dies'), 'ActiveState'), 'active');
      disk.write(
        '/etc/systemd/system/needy.service',
        '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/false\n',
      );
      await machine.ok('systemctl', 'daemon-reload');
      assert.equal((await all.restart?.('needy.service', reset))?.kind, 'refused');
      for (const name of ['plain.service', 'absent.service'])
        assert.equal((await all.restart?.(name, reset))?.kind, 'unreachable', name);
    });

    await t.test('starts a unit that systemd gave up on, and names the limit that was reached', async () => {
      const all = driver('burst.service');
      const limits = '[Unit]\nStartLimitBurst=3\nStartLimitIntervalSec=1h\n';
      const command = "/bin/sh -c 'test ! -e /etc/broken/burst && exec sleep infinity'";
      const service = `[Service]\nExecStart=${command}\nRestart=always\nRestartSec=0\n`;
      disk.write('/etc/systemd/system/burst.service', `${limits}${service}`);
      disk.write('/etc/broken/burst', '');
      await machine.ok('systemctl', 'daemon-reload');
      await machine.run('systemctl', 'start', 'burst.service');
      await machine.becomes('burst.service', 'ActiveState', 'failed');
      const failure = await all.failure?.('burst.service');
      assert.equal(failure?.hasGivenUp, 'yes', failure?.text);
      assert.match(failure?.text ?? '', /automatic restarts; its start limit: StartLimitBurst=3 in /);
      rmSync(disk.path('/etc/broken/burst'));
      await assert.rejects(machine.ok('systemctl', 'start', 'burst.service'), 'the limit is still reached');
      const answer = await all.restart?.('burst.service', reset);
      assert.equal(answer?.kind, 'notified', answer?.text);
      assert.equal(await machine.show('burst.service', 'ActiveState'), 'active');
    });

    await t.test(
      'has no evidence of failure of a unit that an operator stopped, or that ended with success',
      async () => {
        await machine.ok('systemctl', 'stop', 'burst.service');
        assert.equal(await driver('burst.service').failure?.('burst.service'), undefined);
        disk.write('/etc/systemd/system/brief.service', '[Service]\nExecStart=/bin/true\n');
        await machine.ok('systemctl', 'daemon-reload');
        await start('brief.service');
        await machine.becomes('brief.service', 'ActiveState', 'inactive');
        assert.equal(await driver('brief.service').failure?.('brief.service'), undefined);
      },
    );

    await t.test('reports that a unit has no reload', async () => {
      disk.write('/etc/systemd/system/mute.service', '[Service]\nExecStart=/bin/sleep infinity\n');
      await machine.ok('systemctl', 'daemon-reload');
      await start('mute.service');
      const answer = await driver('mute.service').reset('mute.service', reset);
      assert.equal(answer.kind, 'unreachable');
      assert.match(answer.text, /action: restart/);
    });
  });
});
