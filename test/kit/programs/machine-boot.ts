// Boots a systemd as process 1 of its own namespaces, on a disk that a script builds, and runs commands in it. It ends by a
// shutdown or a power cut, and no process remains. Needs root, namespaces and control groups 2.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { runCommand } from '../../../src/platform/process/run-command.js';
import { childrenOf, isGone } from './processes.js';

export interface BootedSystemd extends AsyncDisposable {
  /** Runs a program as root, at most `Boot.commandMs`. */
  run(...argv: [string, ...string[]]): Promise<MachineRun>;
  /** As run; throws unless the exit code is 0. @returns its stdout without white space around it */
  ok(...argv: [string, ...string[]]): Promise<string>;
  /** @returns a property of a unit */
  show(unit: string, property: string): Promise<string>;
  /** Waits until a property has this value; throws after 20 s with its value and the unit's log. */
  becomes(unit: string, property: string, value: string | RegExp): Promise<void>;
  /** Process id outside the machine. */
  readonly pid1: number;
  /** Command line that runs the program after it in the machine. */
  readonly enter: readonly [string, ...string[]];
  /** Sends SIGKILL to process 1, which ends all processes in it; resolves when none is left. */
  cutPower(): Promise<void>;
  /** Runs `systemctl poweroff`; resolves when no process is left. After a minute it cuts the power and throws. */
  powerOff(): Promise<void>;
}

export interface MachineRun {
  /** `null` if the program did not end by itself. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Boot {
  /**
   * Shell script: makes the current directory the mount point of the disk, with `usr`, `run`, `proc`, `sys`, `dev`, `mnt` and
   * `.old`.
   */
  readonly disk: string;
  /** Environment of the script. */
  readonly env: Readonly<Record<string, string>>;
  /** File that receives the output of the script. */
  readonly scriptLog: string;
  /** Target of the boot; multi-user.target by default. */
  readonly unit?: string;
  /** Another machine that shares its network; its own network by default. */
  readonly networkOf?: number;
  /** 60 s by default. */
  readonly commandMs?: number;
  /** @returns the log of a service, or of systemd itself, for the message of a failure */
  readonly troubles: (service?: string) => string;
}

export const namespaces = ['--mount', '--uts', '--ipc', '--pid', '--fork', '--kill-child'];

/** @returns the mount point of control groups 2; undefined if there is none */
export function controlGroupRoot(): string | undefined {
  const lines = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return lines.find((line) => line.includes(' - cgroup2 '))?.split(' ')[4];
}

export const groupName = (): string => `writ-machine-${randomBytes(4).toString('hex')}`;

/** Runs after the script of the disk: mounts the kernel's file systems and starts process 1. */
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

/** Resolves when process 1 accepts commands; its jobs may still wait. */
export async function bootMachine(boot: Boot): Promise<BootedSystemd> {
  const group = join(controlGroupRoot() ?? '/sys/fs/cgroup', groupName());
  fs.mkdirSync(group);
  const child = start(boot, group);
  const closed = new Promise<'off'>((resolve) => child.once('close', () => resolve('off')));
  const cut = async (): Promise<void> => {
    const [pid1] = childrenOf(child.pid ?? 0);
    child.kill('SIGKILL');
    await closed;
    // Process 1 ends only after all processes in its namespace.
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
  // Only process 1 is in the group, because a group with a process cannot give its controllers to child groups.
  const enter = ['sh', '-c', 'echo 0 >"$0/cgroup.procs" && exec unshare --cgroup sh -c "$1"', group, script];
  const network = networkOf === undefined ? ['unshare', '--net'] : ['nsenter', '-t', String(networkOf), '-n'];
  // It is killed with this process, and with it all processes in the machine.
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

/** Waits until the kernel has removed the dead processes. */
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
