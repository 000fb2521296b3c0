// A master process with two children, as nginx has. It replaces them on HUP, or behaves as a test chooses. A shell script,
// because its children then cost little.
import { spawn } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../assert/until.js';

export type MasterHabit =
  /** Starts new children, then ends the old ones. */
  | 'replaces'
  /** Keeps its children, as nginx does with a configuration that it refuses. */
  | 'keeps'
  /** Ends one of the old children only. */
  | 'keeps-one'
  /** Starts new children. The titles of the old ones show that they accept no work; they keep running. */
  | 'drains'
  /** Ends its children and starts none. */
  | 'drops'
  /** Exits on HUP. */
  | 'dies'
  /** Has no children. */
  | 'alone';

export interface FakeMaster extends AsyncDisposable {
  readonly pid: number;
  readonly pidFile: string;
}

const onHup: Readonly<Record<MasterHabit, string>> = {
  replaces: 'x=$a; y=$b; begin; kill $x $y; wait $x $y',
  drains: 'x=$a; y=$b; begin; kill -USR1 $x $y',
  keeps: ':',
  'keeps-one': 'x=$a; sleep 1000 & a=$!; kill $x; wait $x',
  drops: 'kill $a $b; wait $a $b',
  dies: 'kill $a $b; exit 1',
  alone: ':',
};

const drainingChild = `#!/bin/bash
trap 'exec -a "worker process is shutting down" sleep 1000' USR1
sleep 1000 &
wait
`;

/**
 * Starts the master and waits for its signal handler.
 * @param directory of its pid file
 * @param script of shell that it runs first on HUP
 */
export async function startFakeMaster(
  directory: string,
  habit: MasterHabit,
  script = '',
): Promise<FakeMaster> {
  const first = join(directory, 'first');
  writeFileSync(first, script);
  const ready = join(directory, 'ready');
  // A file of an earlier master would end the wait too soon: a signal before the trap would end the new one.
  rmSync(ready, { force: true });
  const child = habit === 'drains' ? join(directory, 'child') : 'sleep 1000';
  if (habit === 'drains') writeFileSync(child, drainingChild, { mode: 0o755 });
  const program = `
    begin() { ${child} & a=$!; ${child} & b=$!; }
    trap 'sh ${first}; ${onHup[habit]}' HUP
    ${habit === 'alone' ? '' : 'begin'}
    : > ${ready}
    while :; do if [ -n "$a" ]; then wait; else read line; fi; done
  `;
  const master = spawn('sh', ['-c', program], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  const ended = new Promise<void>((resolve) => master.once('exit', () => resolve()));
  const pid = master.pid ?? 0;
  await until(() => existsSync(ready));
  const pidFile = join(directory, 'master.pid');
  writeFileSync(pidFile, `${pid}\n`);
  return {
    pid,
    pidFile,
    [Symbol.asyncDispose]: async () => {
      // Kills the process group, because children outlive a shell.
      killGroup(pid);
      await ended;
    },
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    assertGone(error);
  }
}

function assertGone(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
}
