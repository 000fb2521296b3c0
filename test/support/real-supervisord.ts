// The real supervisord with a group `worker` of two programs, which note the signals they get. Owns the process
// and what it started; a stand-in that misbehaves is in fake-supervisord.ts.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/platform/clock.js';
import { callSupervisord } from '../../src/workers/supervisord-client.js';
import { until } from './until.js';

export interface RealSupervisord extends AsyncDisposable {
  readonly socket: string;
  /** Lines that worker N wrote: `started PID`, then `HUP` for each. */
  lines(worker: number): readonly string[];
  /** Ends worker N for good, as `supervisorctl stop` does for a whole group. */
  end(worker: number): Promise<void>;
  stop(): Promise<void>;
}

/** Notes its start and its signals; ends at once, as a broken policy would have it, when `broken` is there. */
const program = `
[ -e DIR/broken ] && exit 3
echo "started $$" >> DIR/$1.log
trap 'echo HUP >> DIR/$1.log' HUP
while :; do sleep 0.05; done
`;

function config(directory: string): string {
  return `
[supervisord]
nodaemon=true
logfile=${directory}/supervisord.log
pidfile=${directory}/supervisord.pid
childlogdir=${directory}
[unix_http_server]
file=${directory}/supervisor.sock
chmod=0700
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[program:worker]
command=/bin/sh ${directory}/worker.sh %(process_num)d
numprocs=2
process_name=%(program_name)s_%(process_num)d
startsecs=1
startretries=0
`;
}

export async function startSupervisord(directory: string): Promise<RealSupervisord> {
  writeFileSync(join(directory, 'worker.sh'), program.replaceAll('DIR', directory));
  writeFileSync(join(directory, 'supervisord.conf'), config(directory));
  const child: ChildProcess = spawn('supervisord', ['-c', join(directory, 'supervisord.conf')], {
    stdio: 'ignore',
    cwd: directory,
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const lines = (worker: number): readonly string[] => {
    const log = join(directory, `${worker}.log`);
    return existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : [];
  };
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  const socket = join(directory, 'supervisor.sock');
  const end = async (worker: number): Promise<void> => {
    const place = { socket, clock: systemClock };
    const call = ['stopProcess', `worker:worker_${worker}`, true] as const;
    await callSupervisord(place, call, { timeoutMs: 20_000 });
  };
  await until(() => existsSync(socket) && lines(0).length > 0 && lines(1).length > 0);
  return { socket, lines, end, stop, [Symbol.asyncDispose]: stop };
}
