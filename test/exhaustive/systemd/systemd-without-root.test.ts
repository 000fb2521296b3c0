// The agent's unit without root, as in docs/systemd.md, under a real systemd.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bootSystemd, needsBoot } from '../../kit/programs/booted-systemd.js';
import { installUsers, machineWithWrit } from '../../kit/programs/machine-with-writ.js';

const agent = 'writ-agent.service';

describe('writ-agent.service without root, under a real systemd', {
  timeout: 120_000,
  ...needsBoot(),
}, () => {
  it('works without root when no worker needs it', async () => {
    using dir = tempDir();
    const { disk, repository, unit, configure } = machineWithWrit(dir);
    const withoutRoot = '[Service]\nUser=writ-agent\nCapabilityBoundingSet=\n';
    unit(`${agent}.d/without-root.conf`, withoutRoot);
    configure({ bundles: [{ name: 'dns-edge', checks: [{ name: 'true', run: ['true'] }] }] });
    await repository.publish({ 'block.rpz': 'one\n' });
    await using machine = await bootSystemd(disk);
    await installUsers(machine);
    await machine.ok('sh', '-c', 'echo "u writ-agent -" | systemd-sysusers -');
    await machine.ok('systemctl', 'start', 'writ-server.service', agent);
    await repository.publish({ 'block.rpz': 'two\n' });
    await machine.ok('systemctl', 'reload', agent);
    assert.equal(await machine.ok('cat', '/var/lib/writ/policy/current/dns-edge/block.rpz'), 'two');
    assert.equal(
      await machine.ok('stat', '-c', '%U', '/var/lib/writ/policy', '/run/writ'),
      'writ-agent\nwrit-agent',
    );
    const { sandbox } = JSON.parse(await machine.ok('writ', 'status', '--json')) as {
      sandbox: { mode: string; state: string; user: string };
    };
    assert.deepEqual([sandbox.mode, sandbox.state, sandbox.user], ['auto', 'on', 'agent']);
  });
});
