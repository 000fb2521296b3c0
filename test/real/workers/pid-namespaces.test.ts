// A daemon in a container writes its pid there into a file that this host can read, and a process of the host has
// the same pid (FC-13). The test uses a pid namespace, in which it can choose the next pid and no other process takes it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { scriptArgv } from '../../kit/cli/child-script.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';

/** A process with a chosen pid needs a pid namespace of its own. The gate runs as root, so that it never skips this test. */
function needsNamespace(): { skip?: string } {
  return process.getuid?.() === 0 ? needs('unshare', 'util-linux') : { skip: 'only root makes namespaces' };
}

interface Scene {
  /** Shell of the container before it writes the file. */
  readonly container: string;
  /** The path of the file in the container; `{dir}` is the folder on the host. */
  readonly path: string;
  readonly program?: string;
}

interface SignalResult {
  readonly isSameNumber: boolean;
  readonly kind: string;
  readonly code: string | null;
  readonly text: string;
  readonly signals: readonly string[];
}

/** @returns the result of the notification, and the signals that the host process with the pid of the file got */
function signalScene(dir: string, { container, path, program }: Scene): SignalResult {
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
    // The other process has a pid that the container reaches too.
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
  return JSON.parse(run.stdout) as SignalResult;
}

describe('a pid file that a daemon of another pid namespace wrote', () => {
  it(
    'signals no process of the host that has the pid of the daemon in the container',
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

  it('signals none if the file has another path in the container, as in a volume', needsNamespace(), () => {
    using dir = tempDir();
    mkdirSync(dir.join('shared'));
    mkdirSync(dir.join('root'));
    const container = `mount --bind ${dir.join('shared')} ${dir.join('root')}; mount -t tmpfs none ${dir.join('shared')};`;
    const scene = signalScene(dir.path, { container, path: '{dir}/root/pid' });
    assert.deepEqual([scene.isSameNumber, scene.kind, scene.code], [true, 'unreachable', 'PROCESS_UNKNOWN']);
    assert.deepEqual(scene.signals, []);
  });

  it('signals the process of the host if `program` identifies it', needsNamespace(), () => {
    using dir = tempDir();
    mkdirSync(dir.join('shared'));
    const scene = signalScene(dir.path, { container: '', path: '{dir}/shared/pid', program: 'node' });
    assert.deepEqual([scene.isSameNumber, scene.kind, scene.signals], [true, 'notified', ['SIGHUP']]);
  });
});
