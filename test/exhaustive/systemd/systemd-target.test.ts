// Workers after writ-policy.target under a real systemd, from the first boot of a new host to a boot without a server.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bootSystemd, needsBoot } from '../../kit/programs/booted-systemd.js';
import type { BootedSystemd } from '../../kit/programs/machine-boot.js';
import { installUsers, machineWithWrit } from '../../kit/programs/machine-with-writ.js';

/** A worker that records the policy at its start. */
const worker = `[Unit]
Wants=writ-policy.target
After=writ-policy.target
[Service]
ExecStart=/bin/sh -c 'echo started with $(cat /var/lib/writ/policy/current/dns-edge/block.rpz); exec sleep infinity'
[Install]
WantedBy=multi-user.target
`;

/** A daemon like named: it waits for a policy, and its control program cannot connect before. */
const daemon = `[Unit]
Wants=writ-policy.target
After=writ-policy.target
[Service]
ExecStart=/bin/sh -c 'echo started with $(cat /var/lib/writ/policy/current/dns-edge/block.rpz); touch /run/daemon.up; exec sleep infinity'
[Install]
WantedBy=multi-user.target
`;
const control = '#!/bin/sh\ntest -e /run/daemon.up || { echo "connect failed" >&2; exit 1; }\n';
const unreachable = { exit: [1], match: 'connect failed' };
const reachedByProgram = {
  name: 'named',
  uses: ['dns-edge'],
  reset: { run: ['/opt/control'], unreachable, confirms: true },
};
const reachedByLoader = {
  name: 'loaded',
  uses: ['dns-edge'],
  load: { run: ['/opt/control'], unreachable, sandbox: 'off' },
};

const at = async (machine: BootedSystemd, unit: string): Promise<number> =>
  Number(await machine.show(unit, 'ActiveEnterTimestampMonotonic'));

describe('writ-policy.target, under a real systemd', { timeout: 120_000, ...needsBoot() }, () => {
  it('delays workers until a first policy is active, and starts them at once at the next boot', async (t) => {
    using dir = tempDir();
    const { disk, repository, unit, configure } = machineWithWrit(dir);
    unit('worker.service', worker);
    // A unit without a start timeout must declare it.
    disk.write('/etc/systemd/system.conf', '[Manager]\nDefaultTimeoutStartSec=2s\n');
    unit('writ-server.service.d/slow.conf', '[Service]\nTimeoutStartSec=30s\n');
    const states = (machine: BootedSystemd): Promise<string[]> =>
      Promise.all(
        ['writ-agent.service', 'writ-policy-ready.service', 'writ-policy.target', 'worker.service'].map(
          (name) => machine.show(name, 'ActiveState'),
        ),
      );
    const allUp = ['active', 'active', 'active', 'active'];

    await t.test('workers of a new host without a server wait, longer than a start timeout', async () => {
      await using machine = await bootSystemd(disk);
      await installUsers(machine);
      await machine.ok('systemctl', 'enable', 'writ-agent.service', 'worker.service');
      assert.equal(await machine.ok('systemctl', 'is-enabled', 'writ-policy.target'), 'enabled');
      await machine.ok('systemctl', 'start', '--no-block', 'worker.service');
      await machine.becomes('writ-agent.service', 'StatusText', /^no policy is active.*SERVER_UNREACHABLE/);
      await setTimeout(2500);
      assert.deepEqual(await states(machine), ['activating', 'inactive', 'inactive', 'inactive']);
      assert.equal(disk.log('worker.service'), '');
    });

    await t.test('workers wait while the agent cannot start, and start once it is fixed', async () => {
      configure({ pol: 1 });
      await using machine = await bootSystemd(disk);
      await machine.becomes('writ-agent.service', 'ActiveState', 'failed');
      assert.equal(await machine.show('writ-agent.service', 'ExecMainStatus'), '2');
      await machine.becomes('writ-policy-ready.service', 'ActiveState', 'activating');
      await setTimeout(2500);
      assert.deepEqual(await states(machine), ['failed', 'activating', 'inactive', 'inactive']);
      assert.equal(await machine.show('writ-agent.service', 'NRestarts'), '0');

      configure();
      await repository.publish({ 'block.rpz': 'one\n' });
      await machine.ok('systemctl', 'start', 'writ-server.service');
      // Returns when the agent is ready, so not before a policy is active.
      await machine.ok('systemctl', 'start', 'writ-agent.service');
      assert.match(
        await machine.show('writ-agent.service', 'StatusText'),
        /^generation 1 \(dns-edge 1\) is active/,
      );
      await machine.becomes('worker.service', 'ActiveState', 'active');
      assert.deepEqual(await states(machine), allUp);
      assert.ok((await at(machine, 'writ-agent.service')) < (await at(machine, 'worker.service')));
      assert.equal(disk.log('worker.service'), 'started with one\n');

      const pid = await machine.show('worker.service', 'MainPID');
      await machine.ok('systemctl', 'restart', 'writ-agent.service');
      await machine.ok('systemctl', 'stop', 'writ-agent.service');
      assert.deepEqual(await states(machine), ['inactive', 'active', 'active', 'active']);
      assert.equal(await machine.show('worker.service', 'MainPID'), pid, 'no worker ends with the agent');
    });

    await t.test('workers start with the stored policy after a power cut, without a server', async () => {
      await using machine = await bootSystemd(disk);
      assert.equal(await machine.ok('systemctl', 'is-system-running', '--wait'), 'running');
      assert.deepEqual(await states(machine), allUp);
      assert.ok((await at(machine, 'writ-agent.service')) < (await at(machine, 'worker.service')));
      assert.equal(disk.log('worker.service'), 'started with one\nstarted with one\n');
      assert.equal(await machine.show('writ-server.service', 'ActiveState'), 'inactive');
      assert.equal(
        await machine.show('writ-agent.service', 'StatusText'),
        'generation 1 (dns-edge 1) is active',
      );
    });
  });

  it('is reached although its workers wait for it and are unreachable', async () => {
    using dir = tempDir();
    const { disk, repository, unit, configure } = machineWithWrit(dir);
    unit('daemon.service', daemon);
    disk.write('/opt/control', control, 0o755);
    configure({ workers: [reachedByProgram, reachedByLoader] });
    await repository.publish({ 'block.rpz': 'one\n' });
    await using machine = await bootSystemd(disk);
    await installUsers(machine);
    await machine.ok('systemctl', 'enable', 'writ-agent.service', 'daemon.service');
    await machine.ok('systemctl', 'start', 'writ-server.service');
    await machine.ok('systemctl', 'start', 'daemon.service');
    const text = 'generation 1 (dns-edge 1) is active, 2 of 2 workers confirmed';
    await machine.becomes('writ-agent.service', 'StatusText', text);
    assert.equal(disk.log('daemon.service'), 'started with one\n');
    const refusals = JSON.parse(await machine.ok('writ', 'status', '--json')) as { refusals: unknown };
    assert.deepEqual(refusals.refusals, []);
  });
});
