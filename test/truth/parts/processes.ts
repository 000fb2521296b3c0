// Starts a daemon in the foreground as the leader of a process group, so that a signal reaches its children too, and queries
// it with common client programs. Independent of any one daemon.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createWriteStream, existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { defaultPath } from '../../../src/platform/process/run-command.js';
import type { Instance } from './daemon.js';

export interface DaemonProcess {
  readonly argv: readonly [string, ...string[]];
  readonly log: string;
  /** Called until it returns true. */
  readonly isUp: () => boolean | Promise<boolean>;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

type ProcessControls = Pick<Instance, 'start' | 'kill' | 'stopAndGo' | typeof Symbol.asyncDispose>;

/** @param processes of one daemon; a function when its arguments are known only later */
export function runInGroup(
  ...processes: readonly (DaemonProcess | (() => DaemonProcess))[]
): ProcessControls {
  let running: { child: ChildProcess; ended: Promise<void> }[] = [];
  const signalAll = (signal: NodeJS.Signals): void => {
    for (const { child } of running) signalGroup(child, signal);
  };
  const kill = async (): Promise<void> => {
    signalAll('SIGKILL');
    await Promise.all(running.map(({ ended }) => ended));
    for (const { child } of running) leaders.delete(child);
    running = [];
  };
  return {
    start: async () => {
      for (const given of processes) {
        const one = typeof given === 'function' ? given() : given;
        const started = begin(one);
        running.push(started);
        await untilUp(one, started.child);
      }
    },
    kill,
    stopAndGo: signalAll,
    [Symbol.asyncDispose]: kill,
  };
}

/** The leaders of all running daemons. */
const leaders = new Set<ChildProcess>();

/** Ends all daemons, for an interrupted run. */
export function killAll(): void {
  for (const child of leaders) signalGroup(child, 'SIGKILL');
}

/** Starts this number of busy processes, which run until `killAll`. */
export function keepBusy(count: number): void {
  for (let at = 0; at < count; at += 1) {
    leaders.add(spawn('sh', ['-c', 'while :; do :; done'], { detached: true, stdio: 'ignore' }));
  }
}

function begin({ argv: [program, ...args], log, env, cwd }: DaemonProcess) {
  const child = spawn(program, args, {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: defaultPath, ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  const out = createWriteStream(log, { flags: 'a' });
  child.stdout.pipe(out, { end: false });
  child.stderr.pipe(out, { end: false });
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  });
  leaders.add(child);
  return { child, ended };
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const upWithinMs = 60_000;

async function untilUp({ argv, log, isUp }: DaemonProcess, child: ChildProcess): Promise<void> {
  for (const endMs = Date.now() + upWithinMs; Date.now() < endMs; await setTimeout(25)) {
    if (child.exitCode !== null || child.signalCode !== null) break;
    if (await isUp()) return;
  }
  await setTimeout(100);
  const logEnd = existsSync(log) ? readFileSync(log, 'utf8').slice(-1500) : '';
  throw new Error(`${argv[0]} did not come up: ${logEnd}`);
}

/** @returns the stdout of the program, for any exit code; undefined without output or after a timeout */
export function stdoutOf(program: string, ...args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { timeout: 10_000, killSignal: 'SIGKILL', env: { PATH: defaultPath } } as const;
    execFile(program, args, options, (_error, stdout) => {
      const text = stdout.trim();
      resolve(text === '' ? undefined : text);
    });
  });
}

/** @returns the texts of the records, sorted; undefined without a response */
export async function dig(port: number, name: string, type: string): Promise<string | undefined> {
  const how = ['+short', '+tries=2', '+time=4', '@127.0.0.1', '-p', String(port)];
  const text = await stdoutOf('dig', ...how, name, type);
  if (text === undefined || text.startsWith(';;')) return undefined;
  return text.replaceAll('"', '').split('\n').sort().join(' ');
}

export function curl(...args: readonly string[]): Promise<string | undefined> {
  return stdoutOf('curl', '-sS', '--max-time', '8', ...args);
}

/** @returns the version of all parts; different versions joined by a plus; undefined when no part has one */
export function joinVersions(parts: readonly (string | undefined)[]): string | undefined {
  const versions = [...new Set(parts.map((one) => one ?? 'nothing'))];
  if (versions.length > 1) return versions.join('+');
  return parts[0];
}
