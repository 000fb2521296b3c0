// Real Knot Resolver 5 workers on one loopback port, with the example configuration of docs/examples. The test makes their
// policy. Needs kresd and dig.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { exchange } from '../../../src/platform/net/unix-socket.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { createKresdReader, encodeKresdCommand } from '../../../src/workers/protocols/kresd-protocol.js';
import { projectRoot } from '../sources/source-files.js';
import { freePort } from './free-port.js';

const execute = promisify(execFile);

/** The files of docs/examples/dns-edge, which a host has in /etc/writ. */
export const sampleDirectory: string = join(projectRoot, 'docs/examples/dns-edge/');

export interface RealKresdOptions {
  /** Directory with the `current` link; workers read `current/dns-edge/block.rpz` below it. */
  readonly policy: string;
  /** 2 by default. Ids, and names of control sockets, are '1', '2', ... */
  readonly workers?: number;
}

export interface RealKresd extends AsyncDisposable {
  readonly port: number;
  /** Options for `reset: { kresd: ... }`. */
  readonly controlGlob: string;
  /** @returns current process ids by worker id */
  pids(): Readonly<Record<string, number>>;
  /**
   * Sends queries for the addresses of a name, each from another port.
   * @returns the number of each answer: an address, or a status such as NXDOMAIN
   */
  ask(name: string, count?: number): Promise<Readonly<Record<string, number>>>;
  /** Sends SIGKILL, which leaves the control socket. */
  kill(worker: string): Promise<void>;
  /** Starts a worker that does not run. */
  start(worker: string): Promise<void>;
  /** @returns the log of the workers */
  log(): string;
  stop(): Promise<void>;
}

/** @example await using kresd = await startRealKresd({ policy: dir.join('policy') }); */
export async function startRealKresd(options: RealKresdOptions): Promise<RealKresd> {
  const directory = mkdtempSync(join(tmpdir(), 'writ-kresd-'));
  chmodSync(directory, 0o755);
  for (const name of ['run', 'run/control', 'cache']) mkdirSync(join(directory, name));
  const run = join(directory, 'run');
  // UDP and TCP have the same number, and the workers share it by SO_REUSEPORT.
  const port = await freePort();
  const processes = new Map<string, ChildProcess>();
  let log = '';

  const start = async (worker: string): Promise<void> => {
    const child = spawn('kresd', ['-n', '-c', join(sampleDirectory, 'kresd.conf'), run], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        DNS_PORT: String(port),
        SYSTEMD_INSTANCE: worker,
        WRIT_POLICY: options.policy,
        CACHE_DIR: join(directory, 'cache'),
      },
    });
    const note = (chunk: Buffer): void => {
      log += `${worker}: ${chunk}`;
    };
    child.stdout.on('data', note);
    child.stderr.on('data', note);
    processes.set(worker, child);
    await untilItAnswers(join(run, 'control', worker), child, () => log);
  };
  const end = (worker: string, signal: NodeJS.Signals): Promise<void> => {
    const child = processes.get(worker);
    processes.delete(worker);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.kill(signal);
    });
  };
  const stop = async (): Promise<void> => {
    await Promise.all([...processes.keys()].map((worker) => end(worker, 'SIGKILL')));
    rmSync(directory, { recursive: true, force: true });
  };

  try {
    for (let worker = 1; worker <= (options.workers ?? 2); worker += 1) await start(String(worker));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    port,
    controlGlob: join(run, 'control', '*'),
    pids: () => Object.fromEntries([...processes].map(([worker, child]) => [worker, child.pid ?? 0])),
    ask: (name, count = 20) => ask(port, name, count),
    kill: (worker) => end(worker, 'SIGKILL'),
    start,
    log: () => log,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Waits for an answer, because the sockets exist before the worker has read its configuration. */
async function untilItAnswers(path: string, child: ChildProcess, log: () => string): Promise<void> {
  for (let tries = 0; tries < 3000; tries += 1) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`kresd ended: ${log()}`);
    const result = await exchange({
      path,
      request: encodeKresdCommand('worker.pid'),
      read: createKresdReader(),
      timeoutMs: 60_000,
      clock: systemClock,
    });
    const isOurs =
      result.kind === 'answered' && result.value.kind === 'text' && result.value.text === String(child.pid);
    if (isOurs) return;
    await setTimeout(20);
  }
  throw new Error(`kresd does not answer on ${path}: ${log()}`);
}

async function ask(port: number, name: string, count: number): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  for (let asked = 0; asked < count; asked += 1) {
    // One attempt, because a lost query is a fault; with a long timeout, because a busy worker that reads its policy answers
    // late.
    const args = ['+tries=1', '+time=30', '@127.0.0.1', '-p', String(port), name, 'A'];
    const { stdout } = await execute('dig', args);
    const address = new RegExp(`^${name.replaceAll('.', '\\.')}\\.\\s.*\\sA\\s(\\S+)$`, 'm').exec(
      stdout,
    )?.[1];
    const answer = address ?? /status: ([A-Z]+)/.exec(stdout)?.[1] ?? 'no answer';
    answers[answer] = (answers[answer] ?? 0) + 1;
  }
  return answers;
}
