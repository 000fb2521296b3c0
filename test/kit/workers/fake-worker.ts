// A process that stands for a daemon: writes its pid file, appends a line to a log for every signal it gets.
// Owns the child; `reaped: 'never'` leaves a zombie when it dies, as a careless parent does.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { until } from '../assert/until.js';

export interface FakeWorker {
  readonly pid: number;
  /** Names of the signals it got, in order, as SIGHUP. */
  signals(): readonly string[];
  /** Resolves when it has got this many signals. */
  gotSignals(count: number): Promise<void>;
  kill(): Promise<void>;
}

const program = `
const fs = require('node:fs');
const [log, uid] = process.argv.slice(1);
if (uid !== undefined) process.setuid(Number(uid));
for (const name of ['SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'])
  process.on(name, () => fs.appendFileSync(log, name + '\\n'));
setInterval(() => {}, 1000);
fs.writeFileSync(log, '');
`;

/**
 * @param log path of a file that the worker writes
 * @param options.uid it becomes this user (root only) once it runs: this Node may lie where only root can start it
 */
export async function startFakeWorker(log: string, { uid }: { uid?: number } = {}): Promise<FakeWorker> {
  const args = uid === undefined ? [log] : [log, String(uid)];
  // One of a worker before says nothing of this one: a signal that comes before its handlers would end it.
  rmSync(log, { force: true });
  const child: ChildProcess = spawn(process.execPath, ['-e', program, ...args], { stdio: 'ignore' });
  await until(() => existsSync(log));
  const signals = (): readonly string[] => readFileSync(log, 'utf8').split('\n').filter(Boolean);
  return {
    pid: child.pid ?? 0,
    signals,
    gotSignals: (count) => until(() => signals().length >= count),
    kill: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve());
        child.kill('SIGKILL');
      }),
  };
}
