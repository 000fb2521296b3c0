// The door to control groups (version 2): one for each command, in the part of the tree that systemd has delegated to
// the agent's own unit. Touches no other group, and without delegation none at all. Its files are the kernel's: what
// is written there is no change of a disk.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isSystemError, unlessRefused } from '../../core/errors.js';
import { parentOf } from './processes.js';
import { runCommand } from './run-command.js';

export interface GroupBounds {
  /** Of all its processes together. */
  readonly maxMemoryBytes: number;
  readonly maxProcesses: number;
}

export interface ControlGroup {
  /** Program and arguments in front of a command, which enter the group before it begins. */
  readonly enter: readonly string[];
  /** Kills what is left in it. @returns whether its bound of memory has killed somebody */
  close(): Promise<{ readonly outOfMemory: 'yes' | 'no' }>;
}

export interface ControlGroups {
  /** @returns undefined when none can be made just now */
  open(bounds: GroupBounds): ControlGroup | undefined;
}

export interface ControlGroupPlaces {
  /** In the form of /proc/self/cgroup. */
  readonly membership?: string;
  /** Where the tree is mounted. */
  readonly root?: string;
  /** @param unit as `writ-agent.service` */
  readonly isDelegated?: (unit: string) => Promise<boolean>;
}

/** Our own group below the unit's: processes and groups with bounds cannot be in one place. */
const ownGroup = 'agent';

/** @returns undefined where nothing is delegated to us. Never rejects. */
export async function findControlGroups({
  membership = '/proc/self/cgroup',
  root = '/sys/fs/cgroup',
  isDelegated = askSystemd,
}: ControlGroupPlaces = {}): Promise<ControlGroups | undefined> {
  try {
    const path = /^0::(\/.+)$/m.exec(fs.readFileSync(membership, 'utf8'))?.[1] ?? '/';
    const base = basename(path) === ownGroup ? dirname(path) : path;
    if (!base.endsWith('.service')) return undefined;
    const directory = join(root, base);
    const controllers = fs.readFileSync(join(directory, 'cgroup.controllers'), 'utf8').trim().split(' ');
    if (!controllers.includes('memory') || !controllers.includes('pids')) return undefined;
    if (!(await isDelegated(basename(base))) || !moveAside(directory)) return undefined;
    fs.writeFileSync(join(directory, 'cgroup.subtree_control'), '+memory +pids');
    return { open: (bounds) => openGroup(directory, bounds) };
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

async function askSystemd(unit: string): Promise<boolean> {
  const argv = ['systemctl', 'show', '--property=Delegate', '--value', '--', unit] as const;
  const result = await runCommand({ argv, timeoutMs: 5000, maxOutputBytes: 100 });
  return result.kind === 'exited' && result.exitCode === 0 && result.stdout.trim() === 'yes';
}

/** @returns false, and moves nobody, where somebody is there who is neither us nor a child of ours */
function moveAside(directory: string): boolean {
  const lines = fs.readFileSync(join(directory, 'cgroup.procs'), 'utf8').split('\n');
  const pids = lines.filter((line) => line !== '').map(Number);
  if (!pids.every((pid) => pid === process.pid || parentOf(pid) === process.pid)) return false;
  const own = join(directory, ownGroup);
  if (!fs.existsSync(own)) fs.mkdirSync(own);
  for (const pid of pids) fs.writeFileSync(join(own, 'cgroup.procs'), String(pid));
  return true;
}

/** bubblewrap, its init and setpriv are in the group too. */
const ourProcesses = 8;

function openGroup(
  directory: string,
  { maxMemoryBytes, maxProcesses }: GroupBounds,
): ControlGroup | undefined {
  const path = join(directory, `hook-${randomBytes(4).toString('hex')}`);
  try {
    fs.mkdirSync(path);
    fs.writeFileSync(join(path, 'memory.max'), String(maxMemoryBytes));
    fs.writeFileSync(join(path, 'memory.oom.group'), '1');
    fs.writeFileSync(join(path, 'pids.max'), String(maxProcesses + ourProcesses));
    // A kernel without swap has no such file, and needs none.
    const swap = join(path, 'memory.swap.max');
    if (fs.existsSync(swap)) fs.writeFileSync(swap, '0');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    removeGroup(path);
    return undefined;
  }
  // Fixed text, and the path is ours: by the shell itself, so that no child of it can begin outside.
  const enter = ['/bin/sh', '-c', 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"', 'sh', path];
  return { enter, close: () => closeGroup(path) };
}

const maxRemovals = 40;
const removalMs = 25;

async function closeGroup(path: string): Promise<{ outOfMemory: 'yes' | 'no' }> {
  const events = unlessRefused(() => fs.readFileSync(join(path, 'memory.events'), 'utf8')) ?? '';
  const kills = /^oom_kill (\d+)$/m.exec(events)?.[1] ?? '0';
  // Older kernels have no such file: everything in it dies with its PID namespace all the same.
  unlessRefused(() => fs.writeFileSync(join(path, 'cgroup.kill'), '1'));
  // Who was killed leaves the group a moment later.
  for (let tries = 0; tries < maxRemovals && !removeGroup(path); tries++) await setTimeout(removalMs);
  return { outOfMemory: Number(kills) > 0 ? 'yes' : 'no' };
}

function removeGroup(path: string): boolean {
  try {
    fs.rmdirSync(path);
    return true;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return isSystemError(error, 'ENOENT');
  }
}
