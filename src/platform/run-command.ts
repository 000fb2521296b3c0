// The door to other programs: the only place that spawns. A command gets a cleared environment, a deadline,
// a bound on its output and a process group of its own, which is killed whole. Never uses a shell.
import { type ChildProcess, spawn } from 'node:child_process';
import { isSystemError } from '../core/errors.js';

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
  readonly input?: Uint8Array;
  readonly signal?: AbortSignal;
}

interface CommandOutput {
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
  readonly durationMs: number;
}

export type CommandResult =
  | (CommandOutput & { readonly kind: 'exited'; readonly exitCode: number })
  | (CommandOutput & { readonly kind: 'killed'; readonly signal: NodeJS.Signals })
  | (CommandOutput & { readonly kind: 'timed-out' | 'aborted' })
  | { readonly kind: 'not-started'; readonly reason: string };

/** A program is found in these places only, whatever the caller's PATH was. */
export const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Runs one command to its end. Never rejects: every way a command can end is a result.
 * The group is killed with SIGKILL at the deadline, at an abort, and after the leader's own end, so that no
 * child outlives the verdict.
 */
export function runCommand(options: CommandOptions): Promise<CommandResult> {
  const [program, ...args] = options.argv;
  const startedMs = performance.now();
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = spawn(program, args, {
        detached: true,
        env: { PATH: defaultPath, ...options.env },
        stdio: ['pipe', 'pipe', 'pipe', ...(options.extraDescriptors ?? [])],
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      });
    } catch (error) {
      // A NUL byte in an argument, or more arguments than the kernel takes, throws here.
      resolve({ kind: 'not-started', reason: reasonOf(error) });
      return;
    }
    watch(child, options, startedMs, resolve);
  });
}

function watch(
  child: ChildProcess,
  options: CommandOptions,
  startedMs: number,
  resolve: (result: CommandResult) => void,
): void {
  const stdout = collect(child.stdout, options.maxOutputBytes);
  const stderr = collect(child.stderr, options.maxOutputBytes);
  let ended: 'timed-out' | 'aborted' | undefined;
  const end = (why: 'timed-out' | 'aborted') => (): void => {
    ended ??= why;
    killGroup(child);
  };
  const timer = setTimeout(end('timed-out'), options.timeoutMs);
  const abort = end('aborted');
  options.signal?.addEventListener('abort', abort, { once: true });
  if (options.signal?.aborted) abort();
  const finish = (result: (output: CommandOutput) => CommandResult): void => {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', abort);
    const output = {
      stdout: stdout.text(),
      stderr: stderr.text(),
      truncated: stdout.truncated() || stderr.truncated(),
      durationMs: performance.now() - startedMs,
    };
    resolve(result(output));
  };
  child.on('error', (error) => finish(() => ({ kind: 'not-started', reason: reasonOf(error) })));
  // A grandchild that keeps the pipe open would keep 'close' from ever coming: kill the group first.
  child.on('exit', () => killGroup(child));
  child.on('close', (exitCode, signal) =>
    finish((output) => {
      if (ended !== undefined) return { ...output, kind: ended };
      if (signal !== null) return { ...output, kind: 'killed', signal };
      return { ...output, kind: 'exited', exitCode: exitCode ?? 1 };
    }),
  );
  // A command that does not read its input closes the pipe: EPIPE says nothing about its verdict.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(options.input ?? '');
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if (!isSystemError(error, 'ESRCH')) throw error;
  }
}

interface Collector {
  text(): string;
  truncated(): boolean;
}

function collect(stream: NodeJS.ReadableStream | null, maxBytes: number): Collector {
  const chunks: Buffer[] = [];
  let kept = 0;
  let truncated = false;
  stream?.on('data', (chunk: Buffer) => {
    const room = maxBytes - kept;
    if (chunk.length > room) truncated = true;
    if (room > 0) chunks.push(chunk.subarray(0, room));
    kept += Math.min(chunk.length, Math.max(room, 0));
  });
  return { text: () => Buffer.concat(chunks).toString('utf8'), truncated: () => truncated };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
