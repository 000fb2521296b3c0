// Runs the command line as a function in this process, with recorded streams, a directory and an environment of its own.
// Tests of the process itself (signals, a terminal, imports, stdin, another user) start a process: writ-process.ts.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import type { Surroundings } from '../../../src/cli/console/command.js';
import { runWrit as runCommandLine } from '../../../src/cli/run.js';
import type { Clock } from '../../../src/platform/time/clock.js';

export interface WritRun {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunWritOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The system time by default. */
  readonly clock?: Clock;
  /** The build time of this version; by default known only with the system time. */
  readonly releasedAtMs?: number;
  /** Directory of unit files; by default none, whatever this machine has. */
  readonly unitFolders?: readonly string[];
  /** Directory of the built site; by default none. */
  readonly docsFolder?: string;
  /** stderr is a terminal of this width. */
  readonly terminalColumns?: number;
}

/** @param args arguments of `writ`; no terminal is attached, so nothing can be asked */
export async function runWrit(
  args: readonly string[],
  {
    env = {},
    cwd,
    clock,
    releasedAtMs,
    unitFolders = [],
    docsFolder,
    terminalColumns: columns,
  }: RunWritOptions = {},
): Promise<WritRun> {
  const [stdout, stderr] = [keptStream(), keptStream()];
  if (columns !== undefined) Object.assign(stderr.stream, { isTTY: true, columns });
  // No signal arrives: a test that sends one starts a process.
  const signals = new EventEmitter();
  const surroundings: Surroundings = {
    stdin: { isTTY: false, fd: -1 } as unknown as Surroundings['stdin'],
    stdout: stdout.stream as NodeJS.WriteStream,
    stderr: stderr.stream as NodeJS.WriteStream,
    env: { PATH: process.env['PATH'] ?? '', ...env },
    unitFolders,
    ...(docsFolder === undefined ? {} : { docsFolder }),
    ...(cwd === undefined ? {} : { directory: cwd }),
    ...(clock === undefined ? {} : { clock }),
    ...(releasedAtMs === undefined ? {} : { releasedAtMs }),
    on: (signal, listener) => signals.on(signal, listener),
    off: (signal, listener) => signals.off(signal, listener),
    exit: (code) => assert.fail(`a command ended this process with ${code}`),
  };
  const exitCode = await runCommandLine(args, surroundings);
  return { exitCode, stdout: stdout.text(), stderr: stderr.text() };
}

function keptStream(): { readonly stream: Writable; readonly text: () => string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk);
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString() };
}

/** @returns the one JSON object that a command with --json prints; throws SyntaxError otherwise */
export function jsonOf(run: WritRun): Record<string, unknown> {
  return JSON.parse(run.stdout) as Record<string, unknown>;
}
