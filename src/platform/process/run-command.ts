// Runs other programs; only this file spawns. A command gets an empty environment, a timeout, limited output, and its own
// process group, which is killed as a whole. Never uses a shell.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { isSystemError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { maxTimerMs } from '../time/clock.js';
import { inheritedDescriptors } from './inherited-descriptors.js';

export interface CommandOptions {
  readonly argv: readonly [string, ...string[]];
  /** The complete environment; no variable is inherited. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly timeoutMs: number;
  /** Limit of each stream; the excess is dropped, and the result is marked. */
  readonly maxOutputBytes: number;
  /** Further descriptors of the child, in order, beginning with 3. */
  readonly extraDescriptors?: readonly number[];
  /** Gives the child a pipe as descriptor 3 for its status; bytes above this limit are dropped. */
  readonly maxStatusBytes?: number;
  /** Gives the child a pipe as its next descriptor, from which it reads these bytes. */
  readonly extraInput?: Uint8Array;
  readonly input?: Uint8Array;
  /** `latin1` keeps every byte of stdout as one character, for commands with binary output. */
  readonly stdoutEncoding?: 'utf8' | 'latin1';
  /** Receives stderr while the command runs, for a command with prompts; output above the limit is dropped. */
  readonly onStderr?: (text: string) => void;
  readonly signal?: AbortSignal;
}

interface CommandOutput {
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
  readonly durationMs: number;
  /** The text from the status pipe. */
  readonly status?: string;
}

export type CommandResult =
  | (CommandOutput & { readonly kind: 'exited'; readonly exitCode: number })
  | (CommandOutput & { readonly kind: 'killed'; readonly signal: NodeJS.Signals })
  | (CommandOutput & { readonly kind: 'timed-out' | 'aborted' })
  | { readonly kind: 'not-started'; readonly reason: string };

/** A program is found in these folders only, independent of the PATH of the caller. */
export const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Node adds this variable to the environment of a child unless it is set. */
const notInherited = { NODE_V8_COVERAGE: undefined };

/**
 * Runs one command to its end. Never rejects: every end of a command is a result.
 * The group is killed with SIGKILL at the timeout, at an abort, and after the end of the leader, so that no child of the group
 * runs after the result. A daemon that left the group continues and does not delay the result.
 */
export function runCommand(options: CommandOptions): Promise<CommandResult> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = start(options);
    } catch (error) {
      // A NUL byte in an argument, or more arguments than the kernel accepts, throws here.
      resolve({ kind: 'not-started', reason: reasonOf(error) });
      return;
    }
    watch(child, options, startedMs, resolve);
  });
}

function start(options: CommandOptions): ChildProcess {
  const [program, ...args] = options.argv;
  const stdio = openStdio(options);
  try {
    return spawn(program, args, {
      detached: true,
      env: { ...notInherited, PATH: defaultPath, ...options.env },
      stdio: stdio.all,
      ...given({ cwd: options.cwd }),
    });
  } finally {
    stdio.close();
  }
}

type Stdio = (number | 'pipe' | 'ignore')[];

/** Opens the descriptors of a command, and hides those that this process has inherited. */
function openStdio(options: CommandOptions): { readonly all: Stdio; close(): void } {
  const { maxStatusBytes, extraInput, extraDescriptors = [] } = options;
  const pipes = [maxStatusBytes, extraInput].flatMap((one) => (one === undefined ? [] : (['pipe'] as const)));
  const all: Stdio = ['pipe', 'pipe', 'pipe', ...pipes, ...extraDescriptors];
  const inherited = inheritedDescriptors().filter((descriptor) => descriptor >= all.length);
  if (inherited.length === 0) return { all, close: () => undefined };
  const nothing = openSync('/dev/null', constants.O_RDONLY);
  for (const descriptor of inherited) {
    while (all.length <= descriptor) all.push('ignore');
    all[descriptor] = nothing;
  }
  return { all, close: () => closeSync(nothing) };
}

/** Longest time that pipes stay open after the end of the leader, or that a killed leader needs to end. */
const graceMs = 500;

function watch(
  child: ChildProcess,
  options: CommandOptions,
  startedMs: number,
  resolve: (result: CommandResult) => void,
): void {
  const { maxOutputBytes: maxBytes, stdoutEncoding: encoding = 'utf8', onStderr } = options;
  const stdout = collect(child.stdout, maxBytes);
  const stderr = collect(child.stderr, maxBytes, onStderr);
  const { maxStatusBytes } = options;
  const pipe = child.stdio[3] as NodeJS.ReadableStream | null | undefined;
  const status = maxStatusBytes === undefined ? undefined : collect(pipe, maxStatusBytes);
  const output = (): CommandOutput => ({
    stdout: stdout.text(encoding),
    stderr: stderr.text(),
    truncated: stdout.truncated() || stderr.truncated(),
    durationMs: performance.now() - startedMs,
    ...given({ status: status?.text() }),
  });
  let stopped: 'timed-out' | 'aborted' | undefined;
  let exit: ReturnType<typeof endOf> | undefined;
  let grace: NodeJS.Timeout | undefined;
  const finish = (result: CommandEnd): void => {
    clearTimeout(deadline);
    clearTimeout(grace);
    options.signal?.removeEventListener('abort', abort);
    letGo(child);
    resolve(result.kind === 'not-started' ? result : { ...output(), ...result });
  };
  const settle = (): void => finish(stopped === undefined ? (exit ?? endOf(1, null)) : { kind: stopped });
  // A daemon that left the group keeps the pipes open, and a process in a system call does not end at once. Neither may
  // delay the result. setImmediate lets the contents of the pipes be read first.
  const settleSoon = (): void => {
    grace ??= setTimeout(() => setImmediate(settle), graceMs);
  };
  const stop = (why: 'timed-out' | 'aborted'): void => {
    // After the end of the leader its id may belong to another process.
    if (exit !== undefined) return;
    stopped ??= why;
    killGroup(child);
    settleSoon();
  };
  const deadline = setTimeout(() => stop('timed-out'), Math.min(options.timeoutMs, maxTimerMs));
  const abort = (): void => stop('aborted');
  options.signal?.addEventListener('abort', abort, { once: true });
  if (options.signal?.aborted) abort();
  child.on('error', (error) => finish({ kind: 'not-started', reason: reasonOf(error) }));
  // Kill the group first: a grandchild that keeps the pipe open would prevent the event 'close'.
  child.on('exit', (exitCode, signal) => {
    exit = endOf(exitCode, signal);
    killGroup(child);
    settleSoon();
  });
  child.on('close', settle);
  feed(child.stdin, options.input ?? '');
  const { extraInput } = options;
  const place = maxStatusBytes === undefined ? 3 : 4;
  if (extraInput !== undefined) feed(child.stdio[place] as NodeJS.WritableStream | null, extraInput);
}

/** Ignores EPIPE: a command that does not read its input closes the pipe, which is no failure. */
function feed(stream: NodeJS.WritableStream | null, input: Uint8Array | string): void {
  stream?.on('error', () => undefined);
  stream?.end(input);
}

type CommandEnd = DistributiveOmit<CommandResult, keyof CommandOutput>;
type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;

function endOf(exitCode: number | null, signal: NodeJS.Signals | null): CommandEnd {
  return signal ? { kind: 'killed', signal } : { kind: 'exited', exitCode: exitCode ?? 1 };
}

/** Closes the pipes and stops the wait, so that remaining processes of the command do not keep this process running. */
function letGo(child: ChildProcess): void {
  child.stdin?.destroy();
  child.stdout?.destroy();
  child.stderr?.destroy();
  for (const pipe of child.stdio.slice(3)) pipe?.destroy();
  child.unref();
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    // EPERM: the command became another user. It cannot be killed, and is abandoned at the end of the grace time.
    if (!isSystemError(error, 'ESRCH') && !isSystemError(error, 'EPERM')) throw error;
  }
}

function collect(
  stream: NodeJS.ReadableStream | null | undefined,
  maxBytes: number,
  onText?: (text: string) => void,
): { text(encoding?: BufferEncoding): string; truncated(): boolean } {
  const chunks: Buffer[] = [];
  let kept = 0;
  let truncated = false;
  stream?.on('data', (chunk: Buffer) => {
    const bytesLeft = maxBytes - kept;
    if (chunk.length > bytesLeft) truncated = true;
    if (bytesLeft > 0) {
      chunks.push(chunk.subarray(0, bytesLeft));
      onText?.(chunk.subarray(0, bytesLeft).toString('utf8'));
    }
    kept += Math.min(chunk.length, Math.max(bytesLeft, 0));
  });
  return {
    text: (encoding = 'utf8') => Buffer.concat(chunks).toString(encoding),
    truncated: () => truncated,
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
