// Notifications to a busy systemd: it identifies the sender by its process, so the sending process must wait until it reads
// them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bootSystemd, needsBoot } from '../../kit/programs/booted-systemd.js';
import { installUsers, machineWithWrit } from '../../kit/programs/machine-with-writ.js';
import { needs } from '../../kit/programs/real-programs.js';

const options = { timeout: 120_000, ...needs('pgrep', 'procps'), ...needsBoot() };
const agent = 'writ-agent.service';

describe('a notification to a busy systemd', options, () => {
  it('waits until systemd reads it, and is not lost', async () => {
    using dir = tempDir();
    const { disk, repository, configure } = machineWithWrit(dir);
    configure({ sandbox: 'off' });
    await repository.publish({ 'block.rpz': 'one\n' });
    await using machine = await bootSystemd(disk);
    await installUsers(machine);
    await machine.ok('systemctl', 'start', 'writ-server.service', agent);
    await repository.publish({ 'block.rpz': 'two\n' });
    process.kill(machine.pid1, 'SIGSTOP');
    try {
      await machine.ok('writ', 'pull');
      const carried = 'until pgrep -f "^systemd-notify .*generation 2"; do sleep 0.1; done; sleep 1';
      await machine.ok('timeout', '20', 'sh', '-c', carried);
    } finally {
      process.kill(machine.pid1, 'SIGCONT');
    }
    await machine.becomes(agent, 'StatusText', 'generation 2 (dns-edge 2) is active');
    assert.equal(await machine.show(agent, 'ActiveState'), 'active');
  });
});
