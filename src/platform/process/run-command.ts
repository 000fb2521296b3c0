// The door to other programs: the only place that spawns. A command gets a cleared environment, a deadline,
// a bound on its output and a process group of its own, which is killed whole. Never uses a shell.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { isSystemError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { maxTimerMs } from '../time/clock.js';
import { inheritedDescriptors } from './inherited-descriptors.js';

export interface CommandOptions {
  readonly argv: readonly [string, ...string[]];
  /** The whole environment: nothing is inherited. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly timeoutMs: number;
  /** Of each stream; what is longer is dropped, and said so. */
  readonly maxOutputBytes: number;
  /** Descriptors for the child beyond 0-2, in order: the first is its 3. */
  readonly extraDescriptors?: readonly number[];
  /** Gives the child a pipe as its 3, for what it tells us alone; what is longer is dropped. */
  readonly maxStatusBytes?: number;
  /** Gives the child a pipe as its next, from which it reads these bytes to their end. */
  readonly extraInput?: Uint8Array;
  readonly input?: Uint8Array;
  /** `latin1` keeps every byte of stdout as one character, for commands that answer in binary. */
  readonly stdoutEncoding?: 'utf8' | 'latin1';
  /** Sees stderr as it comes, for a command that talks to a person; what is beyond the bound is left out. */
  readonly onStderr?: (text: string) => void;
  readonly signal?: AbortSignal;
}

interface CommandOutput {
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
  readonly durationMs: number;
  /** What came by the pipe for the status. */
  readonly status?: string;
}

export type CommandResult =
  | (CommandOutput & { readonly kind: 'exited'; readonly exitCode: number })
  | (CommandOutput & { readonly kind: 'killed'; readonly signal: NodeJS.Signals })
  | (CommandOutput & { readonly kind: 'timed-out' | 'aborted' })
  | { readonly kind: 'not-started'; readonly reason: string };

/** A program is found in these places only, whatever the caller's PATH was. */
export const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Node adds this one to a child's environment by itself, unless it is named. */
const notInherited = { NODE_V8_COVERAGE: undefined };

/**
 * Runs one command to its end. Never rejects: every way a command can end is a result.
 * The group is killed with SIGKILL at the deadline, at an abort, and after the leader's own end, so that no
 * child of the group outlives the verdict; a daemon that left the group lives on and does not delay it.
 */
export function runCommand(options: CommandOptions): Promise<CommandResult> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = start(options);
    } catch (error) {
      // A NUL byte in an argument, or more arguments than the kernel takes, throws here.
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

/** Nothing but what the command is given: what we have inherited by ourselves is covered. */
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

/** How long pipes may stay open after the leader's end, or a killed leader may take to die. */
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
  // A daemon that left the group keeps the pipes open, and a process inside the kernel does not die at once:
  // neither may hold the verdict. Through setImmediate, so that what the pipes hold is read first.
  const settleSoon = (): void => {
    grace ??= setTimeout(() => setImmediate(settle), graceMs);
  };
  const stop = (why: 'timed-out' | 'aborted'): void => {
    // After the leader's end its id may belong to somebody else.
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
  // A grandchild that keeps the pipe open would keep 'close' from ever coming: kill the group first.
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

/** A command that does not read its input closes the pipe: EPIPE says nothing about its verdict. */
function feed(stream: NodeJS.WritableStream | null, input: Uint8Array | string): void {
  stream?.on('error', () => undefined);
  stream?.end(input);
}

type CommandEnd = DistributiveOmit<CommandResult, keyof CommandOutput>;
type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;

function endOf(exitCode: number | null, signal: NodeJS.Signals | null): CommandEnd {
  return signal ? { kind: 'killed', signal } : { kind: 'exited', exitCode: exitCode ?? 1 };
}

/** Our ends of the pipes and our wait: what is left of the command must not keep this process alive. */
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
    // EPERM: the command became another user. It can't be killed, and is left behind at the end of the grace.
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
    const room = maxBytes - kept;
    if (chunk.length > room) truncated = true;
    if (room > 0) {
      chunks.push(chunk.subarray(0, room));
      onText?.(chunk.subarray(0, room).toString('utf8'));
    }
    kept += Math.min(chunk.length, Math.max(room, 0));
  });
  return {
    text: (encoding = 'utf8') => Buffer.concat(chunks).toString(encoding),
    truncated: () => truncated,
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
