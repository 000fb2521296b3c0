// Runs a program to its end and reports its cost, by GNU time: the counts of the kernel for it and for every process that
// it waited for. A child of Node itself would begin with Node's own memory as its peak; time's child begins with little.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sample } from './sample.js';

const gnuTime = '/usr/bin/time';

export const writProgram: readonly string[] = [
  process.execPath,
  join(import.meta.dirname, '..', '..', 'writ', 'main.js'),
];

export interface Ran extends Sample {
  readonly stdout: string;
}

export interface RunOptions {
  /** Where the notes of the measurement may lie; a file `cost` is written there. */
  readonly notes: string;
  readonly cwd?: string;
}

/** @throws Error with the output of the program, when it does not exit with 0 */
export async function measured(command: readonly string[], { notes, cwd }: RunOptions): Promise<Ran> {
  const cost = join(notes, 'cost');
  const begunMs = performance.now();
  const stdout = await outputOf([gnuTime, '-o', cost, '-f', '%U %S %M', ...command], cwd);
  const wallMs = performance.now() - begunMs;
  const [user = 0, system = 0, kilobytes = 0] = readFileSync(cost, 'utf8').trim().split(' ').map(Number);
  return { wallMs, cpuMs: (user + system) * 1000, peakBytes: kilobytes * 1024, stdout };
}

/** Runs a shell line like `sh -c`; `$1` and on are the arguments. */
export function shell(line: string, ...args: readonly string[]): readonly string[] {
  return ['sh', '-ec', line, 'sh', ...args];
}

/** Runs what prepares a measurement, and is none. @returns stdout */
export function outputOf(command: readonly string[], cwd?: string): Promise<string> {
  const [program = '', ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...(cwd ? { cwd } : {}) });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text;
      });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(output.stdout);
      else
        reject(
          new Error(
            `exit ${code}: ${(output.stderr || output.stdout).trim().slice(0, 2000)}\n${command.join(' ')}`,
          ),
        );
    });
  });
}
