// A real systemd as process 1 of namespaces of its own, on the programs of this machine: an own /etc, /var, /srv and
// network, the units that Writ ships where a package would put them, and next to nothing beside. Owns its start, its
// power cut and that nothing of it is left; knows no unit's meaning. Needs root, namespaces and control groups 2.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { runCommand } from '../../../src/platform/process/run-command.js';
import { projectRoot } from '../sources/source-files.js';
import { childrenOf, isGone } from './processes.js';
import { needs } from './real-programs.js';

export interface BootedSystemd extends AsyncDisposable {
  /** Runs a program in it as root; its end is bound by 60 s. */
  run(...argv: [string, ...string[]]): Promise<MachineRun>;
  /** As run; fails unless it exits with 0. @returns its stdout without white space around it */
  ok(...argv: [string, ...string[]]): Promise<string>;
  /** A property of a unit. */
  show(unit: string, property: string): Promise<string>;
  /** Waits until a property is this; fails after 20 s with what it is, and the unit's log. */
  becomes(unit: string, property: string, value: string | RegExp): Promise<void>;
  /** As it is known outside. */
  readonly pid1: number;
  /** The command line before a program for it to run in the machine. */
  readonly enter: readonly [string, ...string[]];
  /** SIGKILL to process 1, and so to everything in it; resolves when nothing is left. */
  cutPower(): Promise<void>;
}

export interface MachineRun {
  /** `null` when it did not end by itself. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The disk of a machine: what is written there outlives a boot. */
export interface MachineDisk {
  /** @param path absolute, as in the machine. @returns where it lies on this host */
  path(path: string): string;
  /** Writes a file with its parents. */
  write(path: string, text: string, mode?: number): void;
  /** What a service wrote to stdout and stderr. */
  log(service: string): string;
}

const systemdProgram = '/lib/systemd/systemd';
const setupMount = '/sys/fs/cgroup';

/** @returns options for node:test: empty where a systemd can be booted; in CI a missing program fails the test */
export function needsBoot(): { skip?: string } {
  const missing = [
    needs('systemctl', 'systemd'),
    needs('unshare', 'util-linux'),
    needs('bwrap', 'bubblewrap'),
  ].find(({ skip }) => skip !== undefined);
  if (missing !== undefined) return missing;
  if (process.getuid?.() !== 0) return { skip: 'only root can boot a systemd' };
  const group = controlGroupRoot();
  if (group === undefined) return { skip: 'no tree of control groups (version 2) is mounted here' };
  const trial = 'mount -t cgroup2 none /mnt && mount -t proc none /proc';
  const tried = spawnSync('unshare', [...namespaces, '--cgroup', 'sh', '-c', trial]);
  if (tried.status !== 0) return { skip: 'this container may not make the namespaces of a machine' };
  try {
    const path = join(group, groupName());
    fs.mkdirSync(path);
    fs.rmdirSync(path);
    return {};
  } catch {
    return { skip: 'control groups are read-only here' };
  }
}

const namespaces = ['--mount', '--uts', '--ipc', '--net', '--pid', '--fork', '--kill-child'];

/** @returns options for node:test: empty where units of a machine can be given bounds of memory and of processes */
export function needsControllers(): { skip?: string } {
  const boot = needsBoot();
  const root = controlGroupRoot();
  if (boot.skip !== undefined || root === undefined) return boot;
  const given = fs.readFileSync(join(root, 'cgroup.subtree_control'), 'utf8').trim().split(' ');
  const missing = ['memory', 'pids'].filter((name) => !given.includes(name));
  const skip = `control groups (version 2) have no controller here for: ${missing.join(', ')}`;
  return missing.length === 0 ? {} : { skip };
}

function controlGroupRoot(): string | undefined {
  const lines = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return lines.find((line) => line.includes(' - cgroup2 '))?.split(' ')[4];
}

const groupName = (): string => `writ-machine-${randomBytes(4).toString('hex')}`;

/** @param directory where the disk is kept; must exist */
export function machineDisk(directory: string): MachineDisk {
  fs.chmodSync(directory, 0o755);
  const path = (inside: string): string => join(directory, inside);
  const write: MachineDisk['write'] = (inside, text, mode = 0o644) => {
    fs.mkdirSync(dirname(path(inside)), { recursive: true });
    fs.writeFileSync(path(inside), text, { mode });
  };
  for (const name of ['etc', 'var/lib', 'var/log', 'var/tmp', 'srv', 'opt'])
    fs.mkdirSync(path(name), { recursive: true });
  for (const name of ['passwd', 'group', 'shadow', 'gshadow', 'nsswitch.conf', 'ld.so.cache', 'alternatives'])
    if (fs.existsSync(`/etc/${name}`)) fs.cpSync(`/etc/${name}`, path(`/etc/${name}`), { recursive: true });
  fs.symlinkSync('/run', path('var/run'));
  write('/etc/hosts', '127.0.0.1 localhost\n');
  write('/etc/machine-id', `${randomBytes(16).toString('hex')}\n`);
  // There is no journal.
  const log = (service: string): string => `/var/log/${service}.log`;
  write(
    '/etc/systemd/system/service.d/log.conf',
    `[Service]\nStandardOutput=append:${log('%n')}\nStandardError=append:${log('%n')}\n`,
  );
  return {
    path,
    write,
    log: (service) => {
      const file = path(log(service));
      return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
    },
  };
}

/** What process 1 itself needs of the units of this machine's systemd. */
const targets =
  'sysinit basic multi-user shutdown umount final local-fs sockets paths timers slices network rescue emergency';

/** Builds what process 1 sees, and becomes it. In the environment: DISK, PROJECT, NODE. */
const setup = `set -e
cd "$DISK"
mkdir -p usr run tmp proc sys dev opt/writ mnt root home .layers .old
chmod 1777 tmp var/tmp
mount --bind . . && cd "$DISK"
for link in bin sbin lib lib32 lib64 libx32; do
  if [ -L /$link ]; then ln -sfn "$(readlink /$link)" $link
  elif [ -d /$link ]; then mkdir -p $link; mount --rbind /$link $link; fi
done
mount --rbind /usr usr
mount -t tmpfs -o mode=755 none .layers
mkdir -p .layers/bin .layers/work .layers/units .layers/none
ln -s /opt/writ/dist/writ/main.js .layers/bin/writ
touch .layers/bin/node
mount -t overlay -o lowerdir=/usr/bin,upperdir=.layers/bin,workdir=.layers/work none usr/bin
mount --bind "$NODE" usr/bin/node
mount --bind "$PROJECT" opt/writ
for target in $TARGETS; do cp /usr/lib/systemd/system/$target.target .layers/units/; done
cp "$PROJECT"/packaging/systemd/*.service "$PROJECT"/packaging/systemd/*.target .layers/units/
mount --bind .layers/units usr/lib/systemd/system
mount --bind .layers/none usr/lib/systemd/system-generators
mount -t proc none proc
mount -t sysfs -o ro none sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs -o mode=755 none run
mount -t tmpfs -o mode=1777 none tmp
mount -t tmpfs -o mode=755 none dev
mkdir dev/pts dev/shm
for device in null zero full random urandom tty; do
  touch dev/$device; mount --bind /dev/$device dev/$device
done
# The one place where systemd itself can write of its troubles.
: >var/log/systemd.log; touch dev/kmsg; mount --bind var/log/systemd.log dev/kmsg
mount -t devpts -o newinstance,ptmxmode=0666 none dev/pts; ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 none dev/shm
ln -s /proc/self/fd dev/fd
pivot_root . .old
umount -l .old
exec env -i container=writ-test PATH=/usr/bin:/usr/sbin \\
  ${systemdProgram} --system --unit=multi-user.target --log-target=kmsg
`;

/**
 * Boots from the disk, and resolves when process 1 takes orders; its jobs may still be waiting.
 * @example await using machine = await bootSystemd(disk);
 */
export async function bootSystemd(disk: MachineDisk): Promise<BootedSystemd> {
  const group = join(controlGroupRoot() ?? setupMount, groupName());
  fs.mkdirSync(group);
  const child = start(disk, group);
  const cutPower = async (): Promise<void> => {
    const [pid1] = childrenOf(child.pid ?? 0);
    const ended = child.exitCode === null && child.signalCode === null;
    if (ended) {
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('close', resolve));
    }
    // Process 1 is gone when everybody in its namespace is.
    if (pid1 !== undefined) await isGone(pid1);
    await removeGroup(group);
  };
  try {
    return { ...(await open(child, disk)), cutPower, [Symbol.asyncDispose]: cutPower };
  } catch (error) {
    await cutPower();
    throw error;
  }
}

function start(disk: MachineDisk, group: string): ChildProcess {
  // Process 1 alone is in the group: no group with a process in it can give its controllers to groups below.
  const enter = ['sh', '-c', 'echo 0 >"$0/cgroup.procs" && exec unshare --cgroup sh -c "$1"', group, setup];
  // It dies with us, and everything in the machine with it.
  return spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...namespaces, ...enter], {
    env: {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      DISK: disk.path('/'),
      PROJECT: projectRoot,
      NODE: fs.realpathSync(process.execPath),
      TARGETS: targets,
    },
    stdio: ['ignore', 'ignore', fs.openSync(disk.path('/var/log/setup.log'), 'w')],
  });
}

async function open(
  child: ChildProcess,
  disk: MachineDisk,
): Promise<Omit<BootedSystemd, 'cutPower' | symbol>> {
  const troubles = (): string => `${disk.log('setup')}\n${disk.log('systemd')}`;
  const pid1 = await firstChild(child);
  const enter = ['nsenter', '-t', String(pid1), '-m', '-u', '-i', '-n', '-p', '-C'] as const;
  const run: BootedSystemd['run'] = async (...argv) => {
    const env = ['env', '-i', 'PATH=/usr/sbin:/usr/bin', ...argv];
    const limits = { timeoutMs: 60_000, maxOutputBytes: 1_000_000 };
    const result = await runCommand({ argv: [...enter, ...env], cwd: '/', ...limits });
    if (result.kind === 'not-started') throw new Error(result.reason);
    const { stdout, stderr } = result;
    return { exitCode: result.kind === 'exited' ? result.exitCode : null, stdout, stderr };
  };
  const ok: BootedSystemd['ok'] = async (...argv) => {
    const { exitCode, stdout, stderr } = await run(...argv);
    if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${exitCode}\n${stdout}${stderr}\n${troubles()}`);
    return stdout.trim();
  };
  const show: BootedSystemd['show'] = (unit, property) =>
    ok('systemctl', 'show', '--value', `--property=${property}`, '--', unit);
  const becomes: BootedSystemd['becomes'] = async (unit, property, value) => {
    let now = '';
    for (let tries = 0; tries < 200; tries += 1) {
      now = await show(unit, property);
      if (typeof value === 'string' ? now === value : value.test(now)) return;
      await setTimeout(100);
    }
    throw new Error(`${unit}: ${property} is ${now}, not ${value}\n${disk.log(unit)}\n${troubles()}`);
  };
  await answering(run, troubles);
  return { run, ok, show, becomes, pid1, enter: [...enter] };
}

async function firstChild(child: ChildProcess): Promise<number> {
  for (let tries = 0; tries < 1000 && child.exitCode === null; tries += 1) {
    const [pid] = childrenOf(child.pid ?? 0);
    if (pid !== undefined) return pid;
    await setTimeout(10);
  }
  throw new Error(`no process 1: exit ${child.exitCode}`);
}

async function answering(run: BootedSystemd['run'], troubles: () => string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const { stdout } = await run('systemctl', 'is-system-running').catch(() => ({ stdout: '' }));
    if (/^(?:starting|running|degraded)$/.test(stdout.trim())) return;
    await setTimeout(50);
  }
  throw new Error(`systemd takes no orders\n${troubles()}`);
}

/** Its processes are dead; the kernel takes a moment to know it. */
async function removeGroup(group: string): Promise<void> {
  const remove = (path: string): void => {
    for (const entry of fs.readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) remove(join(path, entry.name));
    fs.rmdirSync(path);
  };
  for (let tries = 0; ; tries += 1) {
    try {
      remove(group);
      return;
    } catch (error) {
      if (tries > 100) throw error;
      await setTimeout(20);
    }
  }
}
