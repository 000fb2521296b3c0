// A daemon in a container writes the number that it has there into a file that this host sees, and a process of the host has
// the same number (FC-13). In a pid namespace of its own, where the next number can be chosen and no other process takes it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { scriptArgv } from '../../kit/cli/child-script.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';

/** A process with a chosen pid needs a pid namespace of its own; the gate runs as root, so that it is never left out there. */
function needsNamespace(): { skip?: string } {
  return process.getuid?.() === 0 ? needs('unshare', 'util-linux') : { skip: 'only root makes namespaces' };
}

interface Scene {
  /** What the container does before it writes the file. */
  readonly container: string;
  /** The path under which the container writes the file; `{dir}` is the folder on the host. */
  readonly path: string;
  readonly program?: string;
}

interface Told {
  readonly isSameNumber: boolean;
  readonly kind: string;
  readonly code: string | null;
  readonly text: string;
  readonly signals: readonly string[];
}

/** @returns what became of a signal, and what the process of the host got that has the number of the file */
function signalScene(dir: string, { container, path, program }: Scene): Told {
  const script = `
    import { spawn } from 'node:child_process';
    import { existsSync, readFileSync, writeFileSync } from 'node:fs';
    const { signal } = await import(at('src/workers/drivers/signal.js'));
    const { driverContext } = await import(at('test/kit/workers/driver-context.js'));
    const { startFakeWorker } = await import(at('test/kit/workers/fake-worker.js'));
    const dir = ${JSON.stringify(dir)};
    const next = (number) => writeFileSync('/proc/sys/kernel/ns_last_pid', String(number - 1));
    const waitFor = async (isDone) => {
      for (let tries = 0; tries < 400 && !isDone(); tries += 1) await new Promise((done) => setTimeout(done, 25));
    };
    // The stranger has a number that the container reaches too.
    let victim;
    for (let tries = 0; tries < 20 && victim?.pid !== 300; tries += 1) {
      await victim?.kill();
      next(300);
      victim = await startFakeWorker(dir + '/victim');
    }
    const inside = ${JSON.stringify(container)} +
      ' echo 299 >/proc/sys/kernel/ns_last_pid; sh -c "exec sleep 600" & sleep 0.1; echo $! >${path.replaceAll('{dir}', dir)}; wait';
    const flags = ['--pid', '--mount', '--mount-proc', '--fork', '--kill-child'];
    const daemon = spawn('unshare', [...flags, 'sh', '-c', inside], { stdio: ['ignore', 'ignore', 'inherit'] });
    const pidFile = dir + '/shared/pid';
    await waitFor(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith('\\n'));
    const program = ${JSON.stringify(program ?? null)};
    const context = driverContext(program === null ? {} : { process: { program } });
    const driver = signal.create({ signal: 'HUP', pidFile }, context);
    const answer = await driver.reset('pid', { target: { generation: 7, path: '/p/7' }, timeoutMs: 60_000 });
    if (answer.kind === 'notified') await victim.gotSignals(1);
    else await new Promise((done) => setTimeout(done, 100));
    const isSameNumber = Number(readFileSync(pidFile, 'utf8')) === victim.pid;
    const { kind, code = null, text } = answer;
    console.log(JSON.stringify({ isSameNumber, kind, code, text, signals: victim.signals() }));
    daemon.kill('SIGKILL');
    await victim.kill();
    process.exit(0);
  `;
  const [node, ...args] = scriptArgv(script);
  const flags = ['--pid', '--mount', '--mount-proc', '--fork', '--kill-child'];
  const run = spawnSync('unshare', [...flags, node, ...args], { encoding: 'utf8', timeout: 60_000 });
  assert.match(run.stdout, /^\{/, run.stderr);
  return JSON.parse(run.stdout) as Told;
}

describe('a pid file that a daemon of another pid namespace wrote', () => {
  it(
    'signals no process of the host that has the number which the daemon has there',
    needsNamespace(),
    () => {
      using dir = tempDir();
      mkdirSync(dir.join('shared'));
      const scene = signalScene(dir.path, { container: '', path: '{dir}/shared/pid' });
      assert.deepEqual(
        [scene.isSameNumber, scene.kind, scene.code],
        [true, 'unreachable', 'PROCESS_UNKNOWN'],
      );
      assert.match(scene.text, /has the number 300 in its own pid namespace/);
      assert.deepEqual(scene.signals, []);
    },
  );

  it(
    'signals none where the container sees the file under another path, as in a volume',
    needsNamespace(),
    () => {
      using dir = tempDir();
      mkdirSync(dir.join('shared'));
      mkdirSync(dir.join('root'));
      const container = `mount --bind ${dir.join('shared')} ${dir.join('root')}; mount -t tmpfs none ${dir.join('shared')};`;
      const scene = signalScene(dir.path, { container, path: '{dir}/root/pid' });
      assert.deepEqual(
        [scene.isSameNumber, scene.kind, scene.code],
        [true, 'unreachable', 'PROCESS_UNKNOWN'],
      );
      assert.deepEqual(scene.signals, []);
    },
  );

  it('signals the process of the host where `program` says that this is the one', needsNamespace(), () => {
    using dir = tempDir();
    mkdirSync(dir.join('shared'));
    const scene = signalScene(dir.path, { container: '', path: '{dir}/shared/pid', program: 'node' });
    assert.deepEqual([scene.isSameNumber, scene.kind, scene.signals], [true, 'notified', ['SIGHUP']]);
  });
});
