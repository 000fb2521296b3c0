// The agent's unit under a real systemd: its hardening with sandbox and drivers, and its notifications to systemd at a reload,
// a hang and a stop.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bootSystemd, needsBoot } from '../../kit/programs/booted-systemd.js';
import type { BootedSystemd } from '../../kit/programs/machine-boot.js';
import { installUsers, machineWithWrit } from '../../kit/programs/machine-with-writ.js';
import { needs } from '../../kit/programs/real-programs.js';
import { installWeb, webGroup } from '../../kit/programs/served-units.js';

const options = { timeout: 120_000, ...needs('pgrep', 'procps'), ...needsBoot() };
const agent = 'writ-agent.service';
const webs = ['web@1.service', 'web@2.service'] as const;

/** A check that verifies its sandbox, and takes long on request. */
const verifySandbox = `
test "$(id -un)" = nobody || { id; exit 1; }
test -z "$(ls -A /run)" || { ls -A /run; exit 1; }
touch "$2/mine" || exit 1
if touch /var/lib/web/theirs 2>/dev/null; then exit 1; fi
if test -e "$1/dns-edge/slow"; then sleep 20; fi
`;
const check = {
  name: 'look',
  run: ['sh', '-c', verifySandbox, 'sh', '{candidate}', '{scratch}'],
  timeout: '30s',
};
/** As nginx needs it: no user namespace, its own user, the network. */
const asOther = {
  name: 'as another',
  run: ['sh', '-c', 'test "$(id -un)" = writ-check && test -e /proc/1/stat && grep -q lo: /proc/net/dev'],
  user: 'writ-check',
  userNamespace: false,
  network: true,
};
/** A loader that acts on the host with the agent's rights. */
const loader = {
  name: 'loaded',
  uses: ['dns-edge'],
  load: {
    run: ['sh', '-c', 'cp "$1"/dns-edge/block.rpz /var/lib/web/loaded', 'sh', '{current}'],
    sandbox: 'off',
  },
};
const config = {
  sandbox: 'required',
  bundles: [{ name: 'dns-edge', checks: [check, asOther] }],
  workers: [webGroup, loader],
};

/** The time of the unit's last state change. */
const changedAt = (machine: BootedSystemd): Promise<string> =>
  machine.show(agent, 'StateChangeTimestampMonotonic');

describe('writ-agent.service, under a real systemd', options, () => {
  it('does all of its work inside its hardening, and notifies systemd of its state', async (t) => {
    using dir = tempDir();
    const { disk, repository, unit, configure } = machineWithWrit(dir);
    const web = installWeb(disk);
    unit(`${agent}.d/quick.conf`, '[Service]\nWatchdogSec=3s\nRestartSec=100ms\nTimeoutStopSec=3s\n');
    configure(config);
    await repository.publish({ 'block.rpz': 'one\n' });
    await using machine = await bootSystemd(disk);
    await installUsers(machine);
    await machine.ok('systemctl', 'enable', agent, ...webs);
    await machine.ok('systemctl', 'start', 'writ-server.service');
    const pids = (): Promise<string[]> => Promise.all(webs.map((name) => machine.show(name, 'MainPID')));

    await t.test(
      'activates policy that was checked in the sandbox, and starts workers after it',
      async () => {
        await machine.ok('systemctl', 'start', ...webs);
        const status = JSON.parse(await machine.ok('writ', 'status', '--json')) as {
          sandbox: { mode: string; state: string; user: string };
        };
        const { mode, state, user } = status.sandbox;
        assert.deepEqual([mode, state, user], ['required', 'on', 'nobody']);
        const bounds = await machine.ok('cat', `/proc/${await machine.show(agent, 'MainPID')}/status`);
        assert.match(bounds, /^NoNewPrivs:\t1$/m);
        await machine.ok('sh', '-c', 'until test -e /var/lib/web/1 -a -e /var/lib/web/2; do sleep 0.1; done');
        assert.equal(web.uses(2), 'one\n');
      },
    );

    await t.test('notifies units through systemd, and confirms what they use', async () => {
      const before = await pids();
      await repository.publish({ 'block.rpz': 'two\n' });
      const pull = JSON.parse(await machine.ok('writ', 'pull', '--json')) as {
        outcome: string;
        confirmed: boolean;
      };
      assert.deepEqual([pull.outcome, pull.confirmed], ['activated', true]);
      assert.deepEqual([web.uses(1), web.uses(2)], ['two\n', 'two\n']);
      assert.equal(await machine.ok('cat', '/var/lib/web/loaded'), 'two');
      assert.deepEqual(await pids(), before);
      const text = 'generation 2 (dns-edge 2) is active, 3 of 3 workers confirmed';
      await machine.becomes(agent, 'StatusText', text);
    });

    await t.test('ends a reload with the outcome of its pull', async () => {
      await repository.publish({ 'block.rpz': 'three\n' });
      await machine.ok('systemctl', 'reload', agent);
      assert.deepEqual([web.uses(1), web.uses(2)], ['three\n', 'three\n']);
      configure({ ...config, pol: 1 });
      assert.notEqual((await machine.run('systemctl', 'reload', agent)).exitCode, 0);
      assert.equal(await machine.show(agent, 'ReloadResult'), 'exit-code');
      assert.equal(await machine.show(agent, 'ActiveState'), 'active');
      configure(config);
      await machine.ok('systemctl', 'reload', agent);
      assert.equal(await machine.show(agent, 'ReloadResult'), 'success');
    });

    await t.test('is reloading for systemd after a SIGHUP of another process', async () => {
      const before = await changedAt(machine);
      await machine.ok('systemctl', 'kill', '--kill-whom=main', '--signal=HUP', agent);
      await machine.becomes(agent, 'StateChangeTimestampMonotonic', new RegExp(`^(?!${before}$)`));
      await machine.becomes(agent, 'ActiveState', 'active');
    });

    await t.test('is killed and restarted when it hangs, without an end of its workers', async () => {
      const before = await pids();
      const pid = await machine.show(agent, 'MainPID');
      assert.notEqual(pid, '0');
      await machine.ok('kill', '-STOP', pid);
      await machine.becomes(agent, 'NRestarts', '1');
      await machine.becomes(agent, 'ActiveState', 'active');
      assert.notEqual(await machine.show(agent, 'MainPID'), pid);
      assert.deepEqual(await pids(), before);
      assert.equal(await machine.show('writ-policy.target', 'ActiveState'), 'active');
    });

    await t.test('ends a check when it is stopped, and leaves no process', async () => {
      await repository.publish({ 'block.rpz': 'four\n', slow: '' });
      await machine.ok(
        'sh',
        '-c',
        'writ pull >/dev/null 2>&1 & timeout 20 sh -c "until pgrep -x sleep -u nobody; do sleep 0.1; done"',
      );
      await machine.ok('systemctl', 'stop', agent);
      assert.equal(await machine.show(agent, 'Result'), 'success');
      assert.equal((await machine.run('pgrep', '-u', 'nobody')).exitCode, 1);
      assert.equal(web.uses(1), 'three\n');
    });

    await t.test(
      'ends during a notification when it is stopped, and probes the workers at its next start',
      async () => {
        const waits = 'touch /run/reload-begun; until test -e /run/reload-goes-on; do sleep 0.1; done';
        const slow = `[Service]\nExecReload=\nExecReload=/bin/sh -c "${waits}; kill -HUP $MAINPID"\n`;
        unit('web@.service.d/slow.conf', slow);
        await machine.ok('systemctl', 'daemon-reload');
        await repository.publish({ 'block.rpz': 'five\n' });
        await machine.ok('systemctl', 'start', agent);
        // The first poll of an agent with policy comes at its phase, up to an interval later.
        const hasBegun = 'until test -e /run/reload-begun; do sleep 0.1; done';
        await machine.ok('sh', '-c', `writ pull >/dev/null 2>&1 & ${hasBegun}`);
        await machine.ok('systemctl', 'stop', agent);
        assert.equal(await machine.show(agent, 'Result'), 'success');
        assert.deepEqual([web.uses(1), web.uses(2)], ['three\n', 'three\n']);
        await machine.ok('touch', '/run/reload-goes-on');
        await machine.ok('systemctl', 'start', agent);
        const text = 'generation 5 (dns-edge 5) is active, 3 of 3 workers confirmed';
        await machine.becomes(agent, 'StatusText', text);
        assert.deepEqual([web.uses(1), web.uses(2)], ['five\n', 'five\n']);
      },
    );
  });
});
