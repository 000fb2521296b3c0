// Commands in the real bubblewrap: the files, sockets and networks that a check can access, and its leftovers.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Host } from '../../../src/agent/state/host.js';
import { confinedHost, judge, runInSandbox, shellCheck } from '../../kit/host/confined-host.js';
import { type TestHost, type TestHostOptions, testHost } from '../../kit/host/test-host.js';
import { needs } from '../../kit/programs/real-programs.js';

const options = { timeout: 120_000, ...needs('bwrap', 'bubblewrap') };
const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : 'only an agent that is root can make its commands another user';

function policyOf({ host }: TestHost): Host['paths'] {
  return host.paths;
}

/** Opens a socket to which each user can connect. */
async function speakingServer(path: string): Promise<Server> {
  const server = createServer((socket) => socket.end('hello'));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  fs.chmodSync(path, 0o777);
  return server;
}

describe('a check in the sandbox', options, () => {
  it('finds the candidate at the active path at the first start, when there is no current', async () => {
    using test = confinedHost(
      shellCheck(
        'test "$(cat "$POLICY" 2>/dev/null)" = "" && cat "$1/access/policy.txt" && ls -A "$3" && exit 1',
      ),
    );
    assert.equal(fs.existsSync(policyOf(test).current), false);
    const { text, code } = await judge(test);
    assert.equal(code, 'CHECK_FAILED');
    assert.equal(text, 'version 1');
  });

  it('finds the candidate behind `current` and under its final name, and the active generation under its own', async () => {
    using test = confinedHost(shellCheck('true'));
    const { policy } = policyOf(test);
    const script = `cd ${policy}; readlink current; cat current/access/policy.txt; realpath current/access;
      [ "$(realpath "$2")" = "$(realpath current/access)" ] && [ "$1" != "$3" ] && cat "$3/access/policy.txt"; ls bundles/access`;
    assert.equal((await judge(test)).outcome, 'activated');
    const host = test.reopen({ bundles: [{ name: 'access', checks: [shellCheck(`${script}; exit 1`)] }] });
    Object.assign(test.host, { config: host.config });
    const { text } = await judge(test, 2);
    const lines = text.split('\n');
    assert.equal(lines[0], 'generations/2');
    assert.equal(lines[1], 'version 2');
    assert.match(lines[2] ?? '', /\/policy\/bundles\/access\/2-[0-9a-f]{12}\.2$/);
    assert.equal(lines[3], 'version 1');
    assert.equal(lines.length, 6, text);
  });

  it('reaches no vsock, and programs run as without the filter', needs('python3', 'python3'), async () => {
    const vsock =
      "python3 -c 'import socket; socket.socket(40, 1)' 2>&1 | tail -1; node -e 'console.log(6 * 7)'; id -u >/dev/null && echo sh";
    const { text } = await runInSandbox(vsock);
    assert.equal(text, 'OSError: [Errno 38] Function not implemented\n42\nsh');
  });

  it('creates no user namespace and reads no keyring, unless its configuration permits the namespaces', {
    ...needs('python3', 'python3'),
  }, async () => {
    const script =
      'unshare --user --map-root-user true 2>&1 | tail -1; unshare --user --net sh -c "echo inside" 2>&1 | tail -1; ' +
      "python3 -c 'import ctypes, os; l = ctypes.CDLL(None, use_errno=True); " +
      'l.syscall(219 if os.uname().machine == "aarch64" else 250, 0, -3, 0); print(ctypes.get_errno())\'';
    const { text } = await runInSandbox(script);
    const refused = 'unshare: unshare failed: Operation not permitted';
    assert.equal(text, `${refused}\n${refused}\n38`);
    const { text: nested } = await runInSandbox(script, { canNestNamespaces: true });
    assert.equal(nested, 'inside\n38');
  });

  it('runs as user 65534, without capabilities, and cannot become another user', { skip }, async () => {
    const { text } = await runInSandbox(
      'id -u; id -G; grep -E "^(CapEff|CapPrm|NoNewPrivs)" /proc/self/status',
    );
    assert.deepEqual(text.split(/\s+/), [
      ...['65534', '65534', 'CapPrm:', '0000000000000000'],
      ...['CapEff:', '0000000000000000', 'NoNewPrivs:', '1'],
    ]);
  });

  it('runs as the configured user, with the group of a tree that not all users may read', {
    skip,
  }, async () => {
    using test = confinedHost(shellCheck('id -u; cat "$2/policy.txt"; exit 1', { user: 'daemon' }), {
      bundles: [
        {
          name: 'access',
          mode: 0o640,
          group: 'games',
          checks: [shellCheck('id -u; cat "$2/policy.txt"; exit 1', { user: 'daemon' })],
        },
      ],
    });
    const { text } = await judge(test);
    assert.equal(text, '1\nversion 1');
  });

  it('cannot connect to a socket in /run unless the configuration permits it', async () => {
    const directory = fs.mkdtempSync(isRoot ? '/run/writ-test-' : '/tmp/writ-test-');
    const path = join(directory, 'daemon.sock');
    const server = createServer((socket) => socket.end('hello\n'));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    fs.chmodSync(directory, 0o755);
    fs.chmodSync(path, 0o777);
    try {
      const ask = `${process.execPath} -e 'require("net").connect("${path}").on("error", (e) => console.log(e.code)).pipe(process.stdout)'`;
      const shown = process.execPath.startsWith('/root') || process.execPath.startsWith('/home');
      const binds = shown ? [process.execPath] : [];
      assert.equal((await runInSandbox(ask, { binds })).text, 'ENOENT');
      assert.equal((await runInSandbox(ask, { binds: [...binds, directory] })).text, 'hello');
    } finally {
      server.close();
      fs.rmSync(directory, { recursive: true });
    }
  });

  it('cannot connect to the sockets of Writ, whatever their configured paths are', async () => {
    const directory = fs.mkdtempSync('/var/tmp/writ-test-');
    fs.chmodSync(directory, 0o755);
    fs.mkdirSync(join(directory, 'run/workers'), { recursive: true });
    const paths = ['run/workers/app.sock', 'control.sock', 'metrics.sock', 'other.sock'].map((name) =>
      join(directory, name),
    );
    const servers = await Promise.all(paths.map(speakingServer));
    try {
      const [worker, control, metrics, other] = paths;
      const binds = process.execPath.match(/^\/(root|home)\//) === null ? [] : [process.execPath];
      const ask = `for (const p of ${JSON.stringify(paths)}) require("net").connect(p).on("error", (e) => console.log(p, "-")).on("data", (d) => console.log(p, String(d)))`;
      using test = confinedHost(shellCheck(`${process.execPath} -e '${ask}' 2>&1; exit 1`, { binds }), {
        config: { run: join(directory, 'run'), socket: control, metrics: { kind: 'unix', path: metrics } },
      } as TestHostOptions);
      assert.deepEqual((await judge(test)).text.split('\n').sort(), [
        `${control} -`,
        `${metrics} -`,
        `${other} hello`,
        `${worker} -`,
      ]);
    } finally {
      for (const server of servers) server.close();
      fs.rmSync(directory, { recursive: true });
    }
  });

  it('has no network', async () => {
    const { text } = await runInSandbox('cat /proc/net/dev | grep -c :');
    assert.equal(text, '1');
    const open = await runInSandbox('cat /proc/net/dev | grep -c :', { network: 'yes' });
    assert.equal(
      open.text,
      String(
        fs
          .readFileSync('/proc/net/dev', 'utf8')
          .split('\n')
          .filter((l) => l.includes(':')).length,
      ),
    );
  });

  it('reads no file of root, no state, and nothing of /root, /home, /tmp and /run', async () => {
    using secret = testHost();
    const file = join(secret.directory, 'secret');
    fs.writeFileSync(file, 'secret', { mode: 0o644 });
    const { text } = await runInSandbox(`cat /etc/shadow ${file}; ls -A /root /home /tmp /run | grep -v :`);
    assert.match(text, /shadow: Permission denied/);
    assert.match(text, /No such file/);
    assert.doesNotMatch(text, /secret$/);
  });

  it('reads no secret of a driver, whatever users may read it outside', async () => {
    const directory = fs.mkdtempSync('/var/tmp/writ-test-');
    try {
      fs.chmodSync(directory, 0o755);
      const secret = join(directory, 'token');
      fs.writeFileSync(secret, 'Bearer abc', { mode: 0o644 });
      using test = confinedHost(shellCheck(`cat ${secret} 2>&1; ls ${directory}; exit 1`));
      const reset = { driver: 'http', options: { http: 'http://127.0.0.1:1/', authorizationFile: secret } };
      const group = { name: 'g', uses: [], reset };
      const config = { ...test.host.config, workers: [group] } as unknown as Host['config'];
      Object.assign(test.host, { config });
      const { text, code } = await judge(test);
      assert.equal(code, 'CHECK_FAILED');
      assert.match(text, /^token$/m);
      assert.doesNotMatch(text, /abc/);
    } finally {
      fs.rmSync(directory, { recursive: true });
    }
  });

  it('writes only in its scratch directory', async () => {
    const { text } = await runInSandbox(
      `cd "$4"; echo mine > here
      for d in / /run /tmp /home /root /var/tmp /dev /dev/shm /etc; do touch $d/x 2>/dev/null && echo "wrote $d"; done
      for m in $(cut -d' ' -f2 /proc/mounts); do touch $m/x 2>/dev/null && echo "wrote $m" | sed "s,$4,SCRATCH,"; done; cat here`,
    );
    const lines = text.split('\n').filter((line) => !line.startsWith('/dev/'));
    assert.deepEqual(lines, ['wrote SCRATCH', 'mine'], text);
  });

  // A command that can write to these could leave files there for another command.
  it('has hidden paths and the state directory read-only, as any user', async () => {
    using test = confinedHost(shellCheck("cut -d' ' -f2,4 /proc/mounts | cut -d, -f1; exit 1"));
    const { text } = await judge(test);
    const hidden = ['/run', '/tmp', '/home', '/root'].filter((path) => fs.existsSync(path));
    const places = [...hidden, fs.realpathSync(policyOf(test).state)].map((path) => fs.realpathSync(path));
    assert.deepEqual(
      places.filter((place) => !text.split('\n').includes(`${place} ro`)),
      [],
      text,
    );
  });
});
