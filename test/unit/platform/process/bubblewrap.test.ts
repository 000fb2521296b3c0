import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { describe, it } from 'node:test';
import { type Box, boxArgv, runBoxed } from '../../../../src/platform/process/bubblewrap.js';
import { systemCallFilters } from '../../../../src/platform/process/system-call-filter.js';
import { needs } from '../../../kit/programs/real-programs.js';

const programs = { bwrap: '/b/bwrap', prlimit: '/b/prlimit', setpriv: '/b/setpriv' };
const box: Box = {
  userNamespace: 'yes',
  network: 'no',
  mounts: [
    { kind: 'empty', path: '/run' },
    { kind: 'read-only', from: '/a', to: '/b' },
    { kind: 'writable', from: '/s', to: '/s' },
    { kind: 'directory', path: '/d' },
    { kind: 'link', path: '/p/current', target: 'generations/7' },
    { kind: 'sealed', path: '/run' },
  ],
  directory: '/s',
  maxDataBytes: 1000,
  maxProcesses: 5,
};
const user = { uid: 7, gid: 8, groups: [9, 10] };

const argvOf = (changes: Partial<Box>): string =>
  boxArgv(programs, { ...box, ...changes }, ['cmd', 'a b']).join(' ');

describe('the arguments of bubblewrap', () => {
  it('build the file system in order, and seal it', () => {
    const mounts =
      '--tmpfs /run --ro-bind /a /b --bind /s /s --dir /d --symlink generations/7 /p/current --remount-ro /run';
    assert.ok(
      argvOf({}).includes(`--ro-bind / / --dev /dev --proc /proc ${mounts} --remount-ro /dev --chdir /s`),
    );
  });

  it('give an agent that is not root one user namespace, and its own user', () => {
    const argv = argvOf({});
    assert.match(
      argv,
      /^\/b\/bwrap --unshare-user --die-with-parent --unshare-pid --unshare-ipc --unshare-uts --unshare-net /,
    );
    assert.match(argv, / --json-status-fd 3 -- \/b\/prlimit --core=0 --data=1000 --nproc=5 -- cmd a b$/);
    assert.doesNotMatch(argv, /setpriv/);
  });

  it('mount as root, give root up, and only then begin the namespace and the command', () => {
    const argv = argvOf({ user });
    const order = [
      '/b/bwrap --die',
      ' -- ',
      '/b/setpriv --reuid=7',
      '/b/bwrap --unshare-user',
      '/b/prlimit',
      'cmd',
    ];
    const places = order.map((text) => argv.indexOf(text));
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
    );
    assert.ok(
      places.every((place) => place >= 0),
      argv,
    );
    const drop =
      '--reuid=7 --regid=8 --groups=9,10 --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs --';
    assert.ok(argv.includes(drop), argv);
    assert.equal(argv.match(/--json-status-fd/g)?.length, 1);
    assert.ok(argv.indexOf('--json-status-fd') > argv.indexOf('--unshare-user'));
  });

  it('leave no group to a user without one', () => {
    assert.match(argvOf({ user: { ...user, groups: [] } }), /--regid=8 --clear-groups --inh-caps/);
  });

  it('can omit the user namespace for root, and reports the status of the command from outside then', () => {
    const argv = argvOf({ user, userNamespace: 'no' });
    assert.doesNotMatch(argv, /--unshare-user/);
    assert.ok(argv.indexOf('--json-status-fd') < argv.indexOf('/b/setpriv'));
  });

  it('leave the network of the host where it is asked for, and its settings alone', () => {
    const argv = argvOf({ user, network: 'yes' });
    assert.doesNotMatch(argv, /--unshare-net|\/proc\/sys|\/bin\/sh/);
    assert.match(argvOf({ user }), /--bind \/proc\/sys\/net \/proc\/sys\/net -- \/bin\/sh /);
  });

  it('give the filter of system calls to the bubblewrap that starts the command, and to no other', () => {
    const systemCalls = Buffer.from('program');
    assert.doesNotMatch(argvOf({ user }), /--seccomp/);
    for (const box of [{}, { user }, { user, userNamespace: 'no' as const }]) {
      const argv = argvOf({ ...box, systemCalls });
      assert.equal(argv.match(/--seccomp 4 --json-status-fd 3/g)?.length, 1, argv);
    }
  });

  it('bound no processes where that would count those of others', () => {
    const { maxProcesses: _, ...uncounted } = box;
    assert.doesNotMatch(boxArgv(programs, uncounted, ['cmd']).join(' '), /--nproc/);
  });
});

/** Prints the errno of each try, 0 for one that was let through. */
const systemCallProbe = `
import ctypes, mmap, os, platform, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
print('fds', ','.join(sorted(fd for fd in os.listdir('/proc/self/fd') if int(fd) < 10 and os.path.exists('/proc/self/fd/' + fd))))
def call(name, number, *args):
    ctypes.set_errno(0)
    print(name, ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *args) < 0 else 0)
def family(name, number):
    try: socket.socket(number, socket.SOCK_STREAM); print(name, 0)
    except OSError as error: print(name, error.errno)
family('unix', 1)
family('inet', 2)
family('vsock', 40)
for number, name in ((425, 'setup'), (426, 'enter'), (427, 'register')):
    call('io_uring_' + name, number, 0, 0, 0, 0, 0)
arm = platform.machine() == 'aarch64'
for name, x86_64, aarch64 in (('add_key', 248, 217), ('request_key', 249, 218), ('keyctl', 250, 219), ('userfaultfd', 323, 282)):
    call(name, aarch64 if arm else x86_64, 0, 0, 0, 0, 0)
call('clone3', 435, 0, 0)
call('setns', 268 if arm else 308, os.open('/proc/self/ns/user', os.O_RDONLY), 0x10000000)
call('unshare_files', 97 if arm else 272, 0x400)
def child(name, number, flags):
    pid = os.fork()
    if pid == 0:
        call(name, number, flags, 0, 0, 0, 0)
        sys.stdout.flush()
        try: os.wait()  # clone made a child that prints too; the end of the probe would end it first
        except ChildProcessError: pass
        os._exit(0)
    os.waitpid(pid, 0)
sys.stdout.flush()
child('unshare_user', 97 if arm else 272, 0x10000000)
child('unshare_user_and_net', 97 if arm else 272, 0x50000000)
child('clone_user', 220 if arm else 56, 0x10000000 | 17)
if platform.machine() == 'x86_64':
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex('b814000000cd80c3'))  # mov eax, getpid; int 0x80; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    print('i386', -min(0, ctypes.CFUNCTYPE(ctypes.c_int)(address)()))
    call('x32', 0x40000000 + 39)
`;

const filtersHere = () => systemCallFilters(process.arch) ?? assert.fail(`no filter for ${process.arch}`);

describe('a run in the box', needs('bwrap', 'bubblewrap'), () => {
  const real = { bwrap: '/usr/bin/bwrap', prlimit: '/usr/bin/prlimit', setpriv: '/usr/bin/setpriv' };
  const isRoot = process.getuid?.() === 0;
  const simple: Box = {
    ...(isRoot ? { user: { uid: 65_534, gid: 65_534, groups: [] } } : {}),
    userNamespace: 'yes',
    network: 'no',
    mounts: [],
    directory: '/',
    maxDataBytes: 1e9,
  };
  const run = (argv: string[], changes: Partial<Box> = {}, bwrap = real.bwrap) =>
    runBoxed({
      argv,
      box: { ...simple, ...changes },
      programs: { ...real, bwrap },
      timeoutMs: 60_000,
      maxOutputBytes: 1000,
    });

  for (const userNamespace of isRoot ? (['yes', 'no'] as const) : (['yes'] as const)) {
    it(`has the command's own end, with ${userNamespace} user namespace`, async () => {
      const ended = await run(['sh', '-c', 'echo out; exit 7'], { userNamespace });
      assert.equal(ended.kind, 'exited');
      assert.deepEqual(ended.kind === 'exited' && [ended.exitCode, ended.stdout], [7, 'out\n']);
      const missing = await run(['/nonexistent/program'], { userNamespace });
      assert.equal(missing.kind === 'exited' && missing.exitCode, 127);
      const killed = await run(['sh', '-c', 'kill -TERM $$'], { userNamespace });
      assert.equal(killed.kind === 'killed' && killed.signal, 'SIGTERM');
    });

    it(`distinguishes a command that kills all it can reach from a failed setup, with ${userNamespace} user namespace`, async () => {
      const ended = await run(['sh', '-c', 'kill -9 -1; kill -9 $$'], { userNamespace });
      assert.equal(ended.kind === 'killed' && ended.signal, 'SIGKILL');
    });

    it(`never takes a failed set-up for an exit code, with ${userNamespace} user namespace`, async () => {
      const mounts = [{ kind: 'read-only', from: '/nonexistent', to: '/mnt' }] as const;
      const failed = await run(['true'], { userNamespace, mounts });
      assert.equal(failed.kind, 'not-boxed');
      assert.match(failed.kind === 'not-boxed' ? failed.reason : '', /\/nonexistent/);
      const absent = await run(['true'], { userNamespace, directory: '/nonexistent' });
      assert.equal(absent.kind, 'not-boxed');
    });
  }

  for (const userNamespace of isRoot ? (['yes', 'no'] as const) : (['yes'] as const)) {
    it(
      `cannot escape by a system call, with ${userNamespace} user namespace`,
      needs('python3', 'python3'),
      async () => {
        const { confined: systemCalls } = filtersHere();
        const open = await run(['python3', '-c', systemCallProbe], { userNamespace });
        assert.match(open.kind === 'exited' ? open.stdout : '', /^unix 0$/m, JSON.stringify(open));
        const ended = await run(['python3', '-c', systemCallProbe], { userNamespace, systemCalls });
        assert.ok(ended.kind === 'exited' && ended.exitCode === 0, JSON.stringify(ended));
        const { ENOSYS, EPERM } = constants.errno;
        const foreign = process.arch === 'x64' ? [`i386 ${ENOSYS}`, `x32 ${ENOSYS}`] : [];
        const refused = [
          ...['vsock', 'io_uring_setup', 'io_uring_enter', 'io_uring_register'],
          ...['add_key', 'request_key', 'keyctl', 'userfaultfd', 'clone3'],
        ].map((name) => `${name} ${ENOSYS}`);
        const forbidden = ['unshare_user', 'unshare_user_and_net', 'clone_user'].map(
          (name) => `${name} ${EPERM}`,
        );
        // The program itself was read by bubblewrap: the command has no descriptor of ours.
        assert.deepEqual(ended.stdout.trim().split('\n'), [
          ...['fds 0,1,2', 'unix 0', 'inet 0'],
          ...refused,
          ...[`setns ${EPERM}`, 'unshare_files 0'],
          ...forbidden,
          ...foreign,
        ]);
      },
    );
  }

  it('creates user namespaces under the filter that permits them', needs('python3', 'python3'), async () => {
    const { nested: systemCalls } = filtersHere();
    const ended = await run(['python3', '-c', systemCallProbe], { systemCalls });
    const lines = ended.kind === 'exited' ? ended.stdout.split('\n') : [];
    assert.deepEqual(
      lines.filter((line) => /^(?:keyctl|userfaultfd|unshare_user|clone_user|clone3) /.test(line)),
      // clone3 has no arguments here: the kernel itself answers EINVAL.
      [`keyctl 38`, `userfaultfd 38`, `clone3 22`, 'unshare_user 0', 'clone_user 0', 'clone_user 0'],
      JSON.stringify(ended),
    );
  });

  it('runs threads and children under the filter', needs('python3', 'python3'), async () => {
    const { confined: systemCalls } = filtersHere();
    const text = `
import os, subprocess, threading
numbers = []
threads = [threading.Thread(target=numbers.append, args=(n,)) for n in range(8)]
for one in threads: one.start()
for one in threads: one.join()
pid = os.fork()
if pid == 0: os._exit(3)
print(sum(numbers), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), subprocess.check_output(['echo', 'child'], text=True).strip())
`;
    const python = await run(['python3', '-c', text], { systemCalls });
    assert.equal(python.kind === 'exited' && python.stdout, '28 3 child\n', JSON.stringify(python));
    const script =
      'const { Worker } = require("node:worker_threads"); const { execFileSync } = require("node:child_process");' +
      'new Worker("require(\'node:worker_threads\').parentPort.postMessage(6 * 7)", { eval: true })' +
      '.on("message", (n) => console.log(n, execFileSync("echo", ["child"], { encoding: "utf8" }).trim()));';
    // Newer versions of Node reserve gigabytes of addresses for each thread.
    const node = await run([process.execPath, '-e', script], { systemCalls, maxDataBytes: 16e9 });
    assert.equal(node.kind === 'exited' && node.stdout, '42 child\n', JSON.stringify(node));
  });

  it('reports that bubblewrap itself cannot be started', async () => {
    assert.equal((await run(['true'], {}, '/nonexistent/bwrap')).kind, 'not-boxed');
  });
});
