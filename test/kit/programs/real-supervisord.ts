// The real supervisord with a group `worker` of two programs, which record their signals and the policy they read.
// fake-supervisord.ts has a fake with faults.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../../src/platform/time/clock.js';
import { callSupervisord } from '../../../src/workers/protocols/supervisord-client.js';
import { until } from '../assert/until.js';
import { writeSupervisordConfig } from './supervisord-config.js';

const execute = promisify(execFile);

export interface RealSupervisord extends AsyncDisposable {
  readonly socket: string;
  /** Lines of worker N: `started PID`, then `HUP` for each signal; each followed by the rules that it read, if any. */
  lines(worker: number): readonly string[];
  /** Stops worker N, as `supervisorctl stop` does for a group. */
  end(worker: number): Promise<void>;
  /** Runs supervisorctl: `ctl('stop', 'worker:*')`. */
  ctl(...args: string[]): Promise<string>;
  stop(): Promise<void>;
}

/** Records its start and its signals; exits at once, as with a broken policy, if the file `broken` exists. */
const program = `
[ -e DIR/broken ] && exit 3
grep -qs broken "$2/worker.conf" && exit 3
note() { echo "$2" >> DIR/$1.log; cat "$3/rules" >> DIR/$1.log 2>/dev/null; }
note $1 "started $$" "$2"
trap "note $1 HUP '$2'" HUP
while :; do sleep 0.05; done
`;

function programs(directory: string, reads: string): string {
  return `[program:worker]
command=/bin/sh ${directory}/worker.sh %(process_num)d ${reads}
numprocs=2
process_name=%(program_name)s_%(process_num)d
startsecs=1
startretries=0`;
}

/** @param reads a directory: programs read its file `rules` at start and at HUP, and exit if its `worker.conf` is `broken` */
export async function startSupervisord(
  directory: string,
  { reads = '/nonexistent' }: { readonly reads?: string } = {},
): Promise<RealSupervisord> {
  writeFileSync(join(directory, 'worker.sh'), program.replaceAll('DIR', directory));
  const { file, socket } = writeSupervisordConfig(directory, programs(directory, reads));
  const child: ChildProcess = spawn('supervisord', ['-c', file], {
    stdio: 'ignore',
    cwd: directory,
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const lines = (worker: number): readonly string[] => {
    const log = join(directory, `${worker}.log`);
    return existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : [];
  };
  const ctl = async (...args: string[]): Promise<string> => {
    const own = ['-c', file];
    return (await execute('supervisorctl', [...own, ...args])).stdout;
  };
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  const end = async (worker: number): Promise<void> => {
    const place = { socket, clock: systemClock };
    const call = ['stopProcess', `worker:worker_${worker}`, true] as const;
    await callSupervisord(place, call, { timeoutMs: 60_000 });
  };
  await until(() => existsSync(socket) && lines(0).length > 0 && lines(1).length > 0);
  return { socket, lines, end, ctl, stop, [Symbol.asyncDispose]: stop };
}
