// Starts a daemon in the foreground as the head of a group of processes, so that a signal reaches its children too, and asks
// by the programs that people ask with. Owns no daemon's knowledge.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createWriteStream, existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { defaultPath } from '../../../src/platform/process/run-command.js';
import type { Instance } from './daemon.js';

export interface DaemonProcess {
  readonly argv: readonly [string, ...string[]];
  readonly log: string;
  /** Asked until it says true. */
  readonly isUp: () => boolean | Promise<boolean>;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

type Life = Pick<Instance, 'start' | 'kill' | 'stopAndGo' | typeof Symbol.asyncDispose>;

/** @param processes that are one daemon; a function where its arguments are known only later */
export function life(...processes: readonly (DaemonProcess | (() => DaemonProcess))[]): Life {
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

/** Of all daemons that run now. */
const leaders = new Set<ChildProcess>();

/** For a run that is broken off: what it started must not stay. */
export function killAll(): void {
  for (const child of leaders) signalGroup(child, 'SIGKILL');
}

/** As many processes that never wait, until `killAll`. */
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
  const said = existsSync(log) ? readFileSync(log, 'utf8').slice(-1500) : '';
  throw new Error(`${argv[0]} did not come up: ${said}`);
}

/** @returns what it writes to stdout, whatever its exit code; undefined where it wrote nothing or took too long */
export function told(program: string, ...args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { timeout: 10_000, killSignal: 'SIGKILL', env: { PATH: defaultPath } } as const;
    execFile(program, args, options, (_error, stdout) => {
      const text = stdout.trim();
      resolve(text === '' ? undefined : text);
    });
  });
}

/** @returns the texts of the records, sorted; undefined where there is no answer */
export async function dig(port: number, name: string, type: string): Promise<string | undefined> {
  const how = ['+short', '+tries=2', '+time=4', '@127.0.0.1', '-p', String(port)];
  const text = await told('dig', ...how, name, type);
  if (text === undefined || text.startsWith(';;')) return undefined;
  return text.replaceAll('"', '').split('\n').sort().join(' ');
}

export function curl(...args: readonly string[]): Promise<string | undefined> {
  return told('curl', '-sS', '--max-time', '8', ...args);
}

/** @returns the one version that all parts say, those that differ with a plus, undefined where nobody says one */
export function together(parts: readonly (string | undefined)[]): string | undefined {
  const versions = [...new Set(parts.map((one) => one ?? 'nothing'))];
  if (versions.length > 1) return versions.join('+');
  return parts[0];
}
