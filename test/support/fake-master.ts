// A master process with two children, as nginx has: replaces them on HUP, or does what a test wants it to do instead.
// A shell, so that its children are cheap. Owns the master and all its children.
import { spawn } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './until.js';

export type MasterHabit =
  /** Starts new children, then ends the old ones. */
  | 'replaces'
  /** Keeps its children, as nginx does with a configuration that it refuses. */
  | 'keeps'
  /** Ends one of the old ones only. */
  | 'keeps-one'
  /** Ends its children and starts none. */
  | 'drops'
  /** Ends when it is told. */
  | 'dies'
  /** Has no children at all. */
  | 'alone';

export interface FakeMaster extends AsyncDisposable {
  readonly pid: number;
  readonly pidFile: string;
}

const onHup: Readonly<Record<MasterHabit, string>> = {
  replaces: 'x=$a; y=$b; begin; kill $x $y; wait $x $y',
  keeps: ':',
  'keeps-one': 'x=$a; sleep 1000 & a=$!; kill $x; wait $x',
  drops: 'kill $a $b; wait $a $b',
  dies: 'kill $a $b; exit 1',
  alone: ':',
};

/** @param directory for its pid file */
export async function startFakeMaster(directory: string, habit: MasterHabit): Promise<FakeMaster> {
  const ready = join(directory, 'ready');
  // One that was here before says nothing of this one: a signal that comes before the trap would end it.
  rmSync(ready, { force: true });
  const script = `
    begin() { sleep 1000 & a=$!; sleep 1000 & b=$!; }
    trap '${onHup[habit]}' HUP
    ${habit === 'alone' ? '' : 'begin'}
    : > ${ready}
    while :; do if [ -n "$a" ]; then wait; else read line; fi; done
  `;
  const child = spawn('sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const pid = child.pid ?? 0;
  await until(() => existsSync(ready));
  const pidFile = join(directory, 'master.pid');
  writeFileSync(pidFile, `${pid}\n`);
  return {
    pid,
    pidFile,
    [Symbol.asyncDispose]: async () => {
      // Its whole group: children outlive a shell.
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
