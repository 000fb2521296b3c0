// Boots a systemd as process 1 of namespaces of its own, on a disk that a script builds, and runs commands in it. Owns its start,
// its end by order or by a power cut, and that nothing of it is left; knows neither what is on the disk nor what a unit means.
// Needs root, namespaces and control groups 2.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { runCommand } from '../../../src/platform/process/run-command.js';
import { childrenOf, isGone } from './processes.js';

export interface BootedSystemd extends AsyncDisposable {
  /** Runs a program in it as root; its end is bound (`Boot.commandMs`). */
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
  /** `systemctl poweroff`; resolves when nothing is left. Fails when it is not off within a minute, and cuts its power. */
  powerOff(): Promise<void>;
}

export interface MachineRun {
  /** `null` when it did not end by itself. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Boot {
  /** For sh: makes the current directory the mount point of the disk, with `usr`, `run`, `proc`, `sys`, `dev`, `mnt` and `.old`. */
  readonly disk: string;
  /** What the script is given. */
  readonly env: Readonly<Record<string, string>>;
  /** What the script printed goes into this file. */
  readonly scriptLog: string;
  /** What is to be reached at its start: multi-user.target. */
  readonly unit?: string;
  /** Of another machine, whose network it is to have; left out: a network of its own. */
  readonly networkOf?: number;
  /** 60 s. */
  readonly commandMs?: number;
  /** @returns what is known of a service, or of systemd itself, for a failure */
  readonly troubles: (service?: string) => string;
}

export const namespaces = ['--mount', '--uts', '--ipc', '--pid', '--fork', '--kill-child'];

/** @returns where control groups 2 are mounted here */
export function controlGroupRoot(): string | undefined {
  const lines = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return lines.find((line) => line.includes(' - cgroup2 '))?.split(' ')[4];
}

export const groupName = (): string => `writ-machine-${randomBytes(4).toString('hex')}`;

/** Behind the script of the disk: the kernel's file systems, and process 1. */
const becomeSystemd = `
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
  /lib/systemd/systemd --system --unit="$UNIT" --log-target=kmsg
`;

/** Resolves when process 1 takes orders; its jobs may still be waiting. */
export async function bootMachine(boot: Boot): Promise<BootedSystemd> {
  const group = join(controlGroupRoot() ?? '/sys/fs/cgroup', groupName());
  fs.mkdirSync(group);
  const child = start(boot, group);
  const closed = new Promise<'off'>((resolve) => child.once('close', () => resolve('off')));
  const cut = async (): Promise<void> => {
    const [pid1] = childrenOf(child.pid ?? 0);
    child.kill('SIGKILL');
    await closed;
    // Process 1 is gone when everybody in its namespace is.
    if (pid1 !== undefined) await isGone(pid1);
    await removeGroup(group);
  };
  let ending: Promise<void> | undefined;
  const cutPower = (): Promise<void> => {
    ending ??= cut();
    return ending;
  };
  try {
    const opened = await open(child, boot);
    const powerOff = async (): Promise<void> => {
      await opened.run('systemctl', 'poweroff');
      const end = await Promise.race([closed, setTimeout(60_000, 'on', { ref: false })]);
      await cutPower();
      if (end === 'on') throw new Error(`a minute, and not off\n${boot.troubles()}`);
    };
    return { ...opened, cutPower, powerOff, [Symbol.asyncDispose]: cutPower };
  } catch (error) {
    await cutPower();
    throw error;
  }
}

function start(
  { disk, env, scriptLog, unit = 'multi-user.target', networkOf }: Boot,
  group: string,
): ChildProcess {
  const script = `set -e\n${disk}${becomeSystemd}`;
  // Process 1 alone is in the group: no group with a process in it can give its controllers to groups below.
  const enter = ['sh', '-c', 'echo 0 >"$0/cgroup.procs" && exec unshare --cgroup sh -c "$1"', group, script];
  const network = networkOf === undefined ? ['unshare', '--net'] : ['nsenter', '-t', String(networkOf), '-n'];
  // It dies with us, and everything in the machine with it.
  return spawn('setpriv', ['--pdeathsig', 'KILL', ...network, 'unshare', ...namespaces, ...enter], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', ...env, UNIT: unit },
    stdio: ['ignore', 'ignore', fs.openSync(scriptLog, 'w')],
  });
}

async function open(
  child: ChildProcess,
  { commandMs = 60_000, troubles }: Boot,
): Promise<Omit<BootedSystemd, 'cutPower' | 'powerOff' | symbol>> {
  const pid1 = await firstChild(child);
  const enter = ['nsenter', '-t', String(pid1), '-m', '-u', '-i', '-n', '-p', '-C'] as const;
  const run: BootedSystemd['run'] = async (...argv) => {
    const env = ['env', '-i', 'PATH=/usr/sbin:/usr/bin', ...argv];
    const limits = { timeoutMs: commandMs, maxOutputBytes: 1_000_000 };
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
    for (let tries = 0; tries < 600; tries += 1) {
      now = await show(unit, property);
      if (typeof value === 'string' ? now === value : value.test(now)) return;
      await setTimeout(100);
    }
    throw new Error(`${unit}: ${property} is ${now}, not ${value}\n${troubles(unit)}`);
  };
  await answering(run, troubles);
  return { run, ok, show, becomes, pid1, enter: [...enter] };
}

async function firstChild(child: ChildProcess): Promise<number> {
  for (let tries = 0; tries < 6000 && child.exitCode === null; tries += 1) {
    const [pid] = childrenOf(child.pid ?? 0);
    if (pid !== undefined) return pid;
    await setTimeout(10);
  }
  throw new Error(`no process 1: exit ${child.exitCode}`);
}

async function answering(run: BootedSystemd['run'], troubles: Boot['troubles']): Promise<void> {
  for (let tries = 0; tries < 1200; tries += 1) {
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
      if (tries > 3000) throw error;
      await setTimeout(20);
    }
  }
}
