// A daemon that ended right before its signal, while another process reused its pid. Runs in a PID namespace of its own, in which
// the test can choose the next pid.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { scriptArgv } from '../../../kit/cli/child-script.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { needs } from '../../../kit/programs/real-programs.js';

/** A process with a chosen pid needs a pid namespace of its own; the gate runs as root, so that it is never left out there. */
function needsNamespace(): { skip?: string } {
  return process.getuid?.() === 0 ? needs('unshare', 'util-linux') : { skip: 'only root makes namespaces' };
}

describe('a process that has the pid of a daemon that ended', () => {
  it('is not signalled in its place', needsNamespace(), () => {
    using dir = tempDir();
    const script = `
      import { spawn } from 'node:child_process';
      import { once } from 'node:events';
      import { existsSync, writeFileSync } from 'node:fs';
      const { signal } = await import(at('src/workers/drivers/signal.js'));
      const { driverContext } = await import(at('test/kit/workers/driver-context.js'));
      const { startFakeWorker } = await import(at('test/kit/workers/fake-worker.js'));
      const path = (name) => ${JSON.stringify(dir.path)} + '/' + name;
      const driver = signal.create({ signal: 'HUP', pidFile: path('pid') }, driverContext());
      const daemon = await startFakeWorker(path('daemon'));
      writeFileSync(path('pid'), String(daemon.pid));
      await driver.members();
      // Start times are counted in hundredths of a second.
      await new Promise((resolve) => setTimeout(resolve, 30));
      await daemon.kill();
      let other;
      for (let tries = 0; tries < 20 && other?.pid !== daemon.pid; tries += 1) {
        await other?.kill();
        writeFileSync('/proc/sys/kernel/ns_last_pid', String(daemon.pid - 1));
        other = await startFakeWorker(path('other' + tries));
      }
      const answer = await driver.reset('pid', { target: { generation: 7, path: '/p/7' }, timeoutMs: 60_000 });
      console.log(JSON.stringify([other.pid === daemon.pid, answer.kind, other.signals()]));
      await other.kill();
      process.exit(0);
    `;
    const [program, ...args] = scriptArgv(script);
    const flags = ['--pid', '--mount', '--mount-proc', '--fork', '--kill-child'];
    const run = spawnSync('unshare', [...flags, program, ...args], { encoding: 'utf8', timeout: 60_000 });
    assert.equal(run.stdout, '[true,"unreachable",[]]\n', run.stderr);
  });
});
