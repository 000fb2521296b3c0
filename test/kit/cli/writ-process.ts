// `writ` as a process: a command that ends by itself, or a long-running one such as `serve`, with its output and its end by
// a signal.
import { type ChildProcess, spawn } from 'node:child_process';
import type { RunWritOptions, WritRun } from './run-writ.js';
import { writProgramUnder } from './writ-program.js';

export interface ProcessOptions extends RunWritOptions {
  readonly input?: string;
  /** A program that runs writ as its last arguments, as `unshare -m`. */
  readonly under?: readonly string[];
  /** A program of the tests that replaces writ. */
  readonly entry?: string;
}

/**
 * Runs the program to its end, as a user would; no terminal is attached. There is no timeout.
 * @returns exitCode (null after a signal), stdout and stderr; rejects only if the process cannot start
 */
export function runWritProcess(args: readonly string[], options: ProcessOptions = {}): Promise<WritRun> {
  return new Promise((resolve, reject) => {
    const { under = [], cwd, env, entry = writProgramUnder(under) } = options;
    const [program = process.execPath, ...rest] = [...under, process.execPath, entry, ...args];
    const child = spawn(program, rest, {
      env: { PATH: process.env['PATH'] ?? '', ...env },
      ...(cwd === undefined ? {} : { cwd }),
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', reject);
    child.on('close', (exitCode) => {
      resolve({
        exitCode,
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
      });
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}

export interface WritProcess {
  readonly child: ChildProcess;
  /** @returns stdout so far */
  stdout(): string;
  stderr(): string;
  /** Resolves with the first match on stdout; rejects if the process ends without one. */
  waitForStdout(pattern: RegExp): Promise<RegExpExecArray>;
  waitForStderr(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<WritRun>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** @example await using server = startWrit(['serve', '--repository', dir, '--listen', '127.0.0.1:0']); */
export function startWrit(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { under = [], entry = writProgramUnder(under) }: Pick<ProcessOptions, 'under' | 'entry'> = {},
): WritProcess {
  const [program = process.execPath, ...rest] = [...under, process.execPath, entry, ...args];
  const child = spawn(program, rest, {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
      for (const watch of [...watchers]) watch();
    });
  }
  let running = true;
  const ended = new Promise<WritRun>((resolve) => {
    child.once('close', (exitCode) => {
      running = false;
      for (const watch of [...watchers]) watch();
      resolve({ exitCode, ...text });
    });
  });
  const waitFor = (name: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const watch = (): void => {
        const match = pattern.exec(text[name]);
        if (match === null && running) return;
        watchers.delete(watch);
        if (match === null) reject(new Error(`writ ended: ${text.stdout}${text.stderr}`));
        else resolve(match);
      };
      watchers.add(watch);
      watch();
    });
  return {
    child,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    waitForStdout: (pattern) => waitFor('stdout', pattern),
    waitForStderr: (pattern) => waitFor('stderr', pattern),
    ended,
    [Symbol.asyncDispose]: async () => {
      if (running) child.kill('SIGKILL');
      await ended;
    },
  };
}
