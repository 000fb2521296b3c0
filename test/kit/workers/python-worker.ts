// The example worker of docs/examples/limits with the python3 of the host. Needs python3.
import { type ChildProcess, spawn } from 'node:child_process';
import { defaultPath } from '../../../src/platform/process/run-command.js';

const program = 'docs/examples/limits/worker.py';

export interface PythonWorker extends AsyncDisposable {
  readonly pid: number;
  /** A line for each policy that it used, the current one last: `generation 3: 60 requests per minute`. */
  answers(): readonly string[];
  /** Its stderr, for example that there is no agent. */
  complaints(): string;
}

/** @param socket path of the group's socket, which may be missing at the start */
export function startPythonWorker(socket: string, name: string): PythonWorker {
  const child: ChildProcess = spawn('python3', [program, socket, name], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: defaultPath },
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let [stdout, stderr] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return {
    pid: child.pid ?? 0,
    answers: () => stdout.split('\n').slice(0, -1),
    complaints: () => stderr,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
