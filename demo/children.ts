// The processes that the demo starts. Each is known by its handle, and only these are ever ended: first asked
// (SIGTERM), then killed. Nothing is looked up by name, so that no process of somebody else can be met.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';

export interface ChildOptions {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** `inherit`: the reader of the demo sees its narration as it comes. Default: kept, and shown after a failure. */
  readonly stderr?: 'inherit';
}

export interface Child {
  readonly name: string;
  readonly pid: number | undefined;
  isRunning(): boolean;
  stdout(): string;
  stderr(): string;
  /**
   * @returns the first match in what it has written so far or writes next, colours aside
   * @throws Error when it ends without, or after a minute, which a busy machine does not take
   */
  waitFor(stream: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with the exit code when it has ended by itself; null after a signal. */
  readonly ended: Promise<number | null>;
  /** Asks it to end. @returns its exit code; null when it had to be killed */
  end(): Promise<number | null>;
}

const waitMs = 60_000;
const graceMs = 5000;

export class Children {
  readonly #running = new Map<Child, ChildProcess>();
  #open = true;

  /** @param name for the reader, as `the agent` */
  start(name: string, { argv: [program, ...args], cwd, env, stderr }: ChildOptions): Child {
    if (!this.#open) throw new Error('the demo is ending');
    const process = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', stderr ?? 'pipe'] });
    const child = childOf(name, process);
    this.#running.set(child, process);
    void child.ended.then(() => this.#running.delete(child));
    return child;
  }

  /** What those that still run have written to stderr: the last lines of each, cut to a length that can be read. */
  lastWords(maxLines: number): string[] {
    return [...this.#running.keys()].flatMap((child) => {
      const lines = child
        .stderr()
        .split('\n')
        .filter((line) => line !== '');
      return lines.slice(-maxLines).map((line) => `${child.name}: ${line.slice(0, 300)}`);
    });
  }

  /** From now on `start` throws: a demo that was broken off begins nothing new. */
  refuseMore(): void {
    this.#open = false;
  }

  /** Ends all, the youngest first: a worker before the agent, the agent before the server. */
  async endAll(): Promise<void> {
    for (const child of [...this.#running.keys()].reverse()) await child.end();
  }

  /** For the moment in which nothing can be awaited any more. */
  killAll(): void {
    for (const process of this.#running.values()) process.kill('SIGKILL');
  }
}

function childOf(name: string, process: ChildProcess): Child {
  const text = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    process[stream]?.setEncoding('utf8').on('data', (chunk: string) => {
      text[stream] += chunk;
    });
  }
  // A program that is not there has no exit: its `error` is its end.
  process.on('error', (error) => {
    text.stderr += `${error.message}\n`;
  });
  const ended = new Promise<number | null>((resolve) => {
    process.once('close', (exitCode) => resolve(exitCode));
  });
  return {
    name,
    pid: process.pid,
    isRunning: () => process.exitCode === null && process.signalCode === null,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    ended,
    waitFor: async (stream, pattern) => {
      const deadline = AbortSignal.timeout(waitMs);
      for (;;) {
        const match = pattern.exec(stripVTControlCharacters(text[stream]));
        if (match !== null) return match;
        if (process.exitCode !== null || process.signalCode !== null) {
          throw new Error(`${name} ended by itself: ${text.stderr}${text.stdout}`);
        }
        const source = process[stream];
        if (source === null) throw new Error(`${name} does not keep its ${stream}`);
        await Promise.race([once(source, 'data', { signal: deadline }), ended]).catch(() => {
          throw new Error(`${name} did not write ${pattern} within ${waitMs / 1000} s`);
        });
      }
    },
    end: async () => {
      process.kill('SIGTERM');
      const kill = setTimeout(() => process.kill('SIGKILL'), graceMs);
      const exitCode = await ended;
      clearTimeout(kill);
      return exitCode;
    },
  };
}
