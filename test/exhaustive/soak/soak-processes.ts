// The processes of a soak. Each is known by its handle and ended by its pid, never found by its name. Ends all of them when
// the driver exits, except after SIGKILL.
import { type ChildProcess, spawn } from 'node:child_process';
import * as fs from 'node:fs';

export interface SoakProcess {
  readonly name: string;
  readonly pid: number;
  isRunning(): boolean;
  kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGHUP'): void;
  /** Exit code; null after a signal. */
  readonly ended: Promise<number | null>;
  /** The stdout so far, unless `onLine` receives it. */
  stdout(): string;
}

export interface StartOptions {
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
  /** The file that stderr is appended to. */
  readonly stderrFile: string;
  /** Called with each line of stdout, which is not collected then. */
  readonly onLine?: (line: string) => void;
}

export class SoakProcesses {
  readonly #running = new Set<ChildProcess>();

  start({ name, argv: [program, ...args], env, stderrFile, onLine }: StartOptions): SoakProcess {
    const stderr = fs.openSync(stderrFile, 'a');
    const child = spawn(program, args, {
      env: { PATH: process.env['PATH'] ?? '', ...env },
      // A policy user exits at the end of its stdin; the other programs ignore it.
      stdio: ['pipe', 'pipe', stderr],
      // Ctrl-C must reach the driver only, which then ends the soak in order.
      detached: true,
    });
    fs.closeSync(stderr);
    child.stdin?.on('error', () => undefined);
    this.#running.add(child);
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (onLine === undefined) return;
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) onLine(line);
    });
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exitCode) => {
        this.#running.delete(child);
        resolve(exitCode);
      });
    });
    ended.catch(() => undefined);
    return {
      name,
      pid: child.pid ?? 0,
      isRunning: () => child.exitCode === null && child.signalCode === null,
      kill: (signal) => void child.kill(signal),
      ended,
      stdout: () => text,
    };
  }

  killAll(): void {
    for (const child of this.#running) child.kill('SIGKILL');
  }
}
