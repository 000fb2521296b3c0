// How users keep a worker running: supervisord, and a shell loop with a pid file. Both start a worker again that ended. Owns their
// processes and everything below them.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../kit/assert/until.js';
import { childrenOf } from '../../kit/programs/processes.js';
import { writeSupervisordConfig } from '../../kit/programs/supervisord-config.js';

export interface Supervised extends AsyncDisposable {
  /** SIGKILL to the supervisor and its workers, as a power cut ends them. */
  cutPower(): Promise<void>;
}

/** Absolute path of a compiled program of the folder `workers`. */
export function workerProgram(name: string): string {
  return join(import.meta.dirname, '..', 'workers', `${name}.js`);
}

export interface SupervisordOptions {
  readonly directory: string;
  readonly group: string;
  readonly command: readonly string[];
}

/**
 * Starts supervisord with one program. The shell ignores signals until Node listens to them, because an earlier signal
 * would end the worker.
 * @returns once supervisord responds
 */
export async function startSupervisord({
  directory,
  group,
  command,
}: SupervisordOptions): Promise<Supervised> {
  const programs = `[program:${group}]
command=/bin/sh -c "trap '' HUP; exec ${command.join(' ')}"`;
  const { file, socket } = writeSupervisordConfig(directory, programs);
  const supervised = startGroup(['supervisord', '-c', file], directory);
  await until(() => existsSync(socket));
  return supervised;
}

/** A script that many have: it starts the worker again a moment after it ended, whatever the reason. */
const loop = 'trap "" HUP; while :; do "$@" 2>>worker.log; sleep 0.2; done';

/** Starts the worker in a shell loop, which does not record how a process ended. */
export function startShellLoop(directory: string, command: readonly string[]): Supervised {
  return startGroup(['sh', '-c', loop, 'worker', ...command], directory);
}

/** Combines several supervisors. */
export function allOf(supervised: readonly Supervised[]): Supervised {
  const cutPower = async (): Promise<void> => {
    await Promise.all(supervised.map((one) => one.cutPower()));
  };
  return { cutPower, [Symbol.asyncDispose]: cutPower };
}

function startGroup([program = '', ...args]: readonly string[], cwd: string): Supervised {
  const child: ChildProcess = spawn(program, args, { cwd, stdio: 'ignore' });
  const ended = once(child, 'exit').catch(() => undefined);
  const kill = (): void => killTree(child.pid);
  process.once('exit', kill);
  const cutPower = async (): Promise<void> => {
    kill();
    await ended;
    process.off('exit', kill);
  };
  return { cutPower, [Symbol.asyncDispose]: cutPower };
}

/** Stops the supervisor first, so that it starts no process while its children are killed. */
function killTree(pid: number | undefined): void {
  if (pid === undefined || !sendSignal(pid, 'SIGSTOP')) return;
  for (const child of childrenOf(pid)) killTree(child);
  sendSignal(pid, 'SIGKILL');
}

function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
