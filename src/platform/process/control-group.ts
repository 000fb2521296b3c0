// Creates one control group (version 2) for each command, in the part of the tree that systemd delegated to the unit of the
// agent. Without delegation it creates none. Its files belong to the kernel, so that writes to them do not change a disk.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isSystemError, unlessRefused } from '../../core/errors.js';
import { parentOf } from './processes.js';
import { runCommand } from './run-command.js';

export interface GroupBounds {
  /** Limit of all processes of the group together. */
  readonly maxMemoryBytes: number;
  readonly maxProcesses: number;
}

export interface ControlGroup {
  /** Program and arguments before a command, which enter the group before the command starts. */
  readonly enter: readonly string[];
  /** Kills the remaining processes and removes the group. @returns whether its memory limit has killed a process */
  close(): Promise<{ readonly outOfMemory: 'yes' | 'no' }>;
}

export interface ControlGroups {
  /** Creates a group. @returns undefined if the kernel refuses it now */
  open(bounds: GroupBounds): ControlGroup | undefined;
}

export interface ControlGroupPlaces {
  /** A file in the form of /proc/self/cgroup. */
  readonly membership?: string;
  /** Mount point of the tree. */
  readonly root?: string;
  /** @param unit such as `writ-agent.service` */
  readonly isDelegated?: (unit: string) => Promise<boolean>;
}

/** Group of the agent itself below that of its unit, because a group with limited subgroups cannot contain processes. */
const ownGroup = 'agent';

/** @returns undefined if no part of the tree is delegated to this process. Never rejects. */
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

/** Moves this process and its children. @returns false without a move if the group contains any other process */
function moveAside(directory: string): boolean {
  const lines = fs.readFileSync(join(directory, 'cgroup.procs'), 'utf8').split('\n');
  const pids = lines.filter((line) => line !== '').map(Number);
  if (!pids.every((pid) => pid === process.pid || parentOf(pid) === process.pid)) return false;
  const own = join(directory, ownGroup);
  if (!fs.existsSync(own)) fs.mkdirSync(own);
  for (const pid of pids) fs.writeFileSync(join(own, 'cgroup.procs'), String(pid));
  return true;
}

/** Added to the limit of processes, because bubblewrap, its init and setpriv are in the group too. */
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
    // A kernel without swap does not have this file.
    const swap = join(path, 'memory.swap.max');
    if (fs.existsSync(swap)) fs.writeFileSync(swap, '0');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    removeGroup(path);
    return undefined;
  }
  // Fixed text with a path of the agent. The shell itself enters the group, so that none of its children starts outside.
  const enter = ['/bin/sh', '-c', 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"', 'sh', path];
  return { enter, close: () => closeGroup(path) };
}

const maxRemovals = 40;
const removalMs = 25;

async function closeGroup(path: string): Promise<{ outOfMemory: 'yes' | 'no' }> {
  const events = unlessRefused(() => fs.readFileSync(join(path, 'memory.events'), 'utf8')) ?? '';
  const kills = /^oom_kill (\d+)$/m.exec(events)?.[1] ?? '0';
  // Older kernels do not have this file; the processes end with their PID namespace there.
  unlessRefused(() => fs.writeFileSync(join(path, 'cgroup.kill'), '1'));
  // A killed process leaves the group a moment later.
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
