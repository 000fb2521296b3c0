// Runs the compiled program as a child process, as a user would, and keeps what it wrote.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const entry = join(import.meta.dirname, '..', '..', '..', 'src', 'cli', 'main.js');

export interface WritRun {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunWritOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
  /** A program that runs writ as its last arguments, as `unshare -m`. */
  readonly under?: readonly string[];
}

/** @param args arguments of `writ`; no terminal is attached, so nothing can be asked */
export function runWrit(args: readonly string[], options: RunWritOptions = {}): Promise<WritRun> {
  return new Promise((resolve, reject) => {
    const [program = process.execPath, ...rest] = [
      ...(options.under ?? []),
      process.execPath,
      entry,
      ...args,
    ];
    const child = spawn(program, rest, {
      env: { PATH: process.env['PATH'] ?? '', ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
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

/** The one JSON object that a command with --json prints. */
export function jsonOf(run: WritRun): Record<string, unknown> {
  return JSON.parse(run.stdout) as Record<string, unknown>;
}
