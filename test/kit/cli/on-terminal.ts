// Runs writ on its own terminal, made by the `script` program, and types answers to its questions.
import { spawn } from 'node:child_process';
import { writProgram } from './writ-program.js';

export interface TerminalRun {
  readonly exitCode: number | null;
  /** The complete output of the terminal. */
  readonly screen: string;
  /** The number of answers without their question on the screen. */
  readonly untyped: number;
}

export interface Typed {
  /** The text on the screen before this answer. */
  readonly question: string;
  readonly typed: string;
}

export interface Done {
  readonly question: string;
  /** An action in place of typed text. */
  readonly act: () => void;
}

/** @param answers what to type or do, in order, each when its question is on the screen */
export function writOnTerminal(
  args: readonly string[],
  answers: readonly (Typed | Done)[],
): Promise<TerminalRun> {
  const command = [process.execPath, writProgram, ...args].join(' ');
  const env = { PATH: process.env['PATH'], TERM: 'xterm' };
  const child = spawn('script', ['-qec', command, '/dev/null'], { env });
  const left = [...answers];
  let screen = '';
  let answeredUpTo = 0;
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    screen += chunk;
    const [next] = left;
    const at = next === undefined ? -1 : screen.indexOf(next.question, answeredUpTo);
    if (next === undefined || at === -1) return;
    left.shift();
    answeredUpTo = at + next.question.length;
    if ('act' in next) next.act();
    else child.stdin.write(`${next.typed}\r`);
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode) => resolve({ exitCode, screen, untyped: left.length }));
  });
}
