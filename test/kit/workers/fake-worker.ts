// A fake daemon: it writes its pid file, and appends a line to a log for each signal.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { until } from '../assert/until.js';

export interface FakeWorker {
  readonly pid: number;
  /** Names of the received signals in order, as SIGHUP. */
  signals(): readonly string[];
  /** Resolves after this many signals. */
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
 * @param options.uid the user that the worker becomes after its start (root only), because Node may be readable by root only
 */
export async function startFakeWorker(log: string, { uid }: { uid?: number } = {}): Promise<FakeWorker> {
  const args = uid === undefined ? [log] : [log, String(uid)];
  // A log of an earlier worker would end the wait too soon: a signal before the handlers would end the new one.
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
