// Runs `writ` with a standard stream that accepts no text: closed, full, or a pipe after its reader ended.
import type { WritRun } from './run-writ.js';
import { runWritProcess } from './writ-process.js';
import { writProgram } from './writ-program.js';

/** `gone`: the reader of the pipe ends after some lines; immediately for 0. */
export type TextLoss = 'closed' | 'full' | 'gone';

export interface LossyStreams {
  readonly stdout?: TextLoss;
  readonly stderr?: TextLoss;
  /** How many lines the reader of a pipe reads before it ends; left out: none. */
  readonly lines?: number;
}

/** A reader of no lines ends before the program starts, so that also its first line is lost. */
const readerEnds = (lines: number): string =>
  `exec 7> >(exec head -n ${lines} > /dev/null); ${lines === 0 ? 'wait $!;' : ''}`;

const redirection: Readonly<Record<TextLoss, string>> = { closed: '&-', full: '/dev/full', gone: '&7' };

/** @returns bash and its arguments; the program that follows them takes its place */
export function lossyShell({ stdout, stderr, lines = 0 }: LossyStreams): readonly string[] {
  const hasReader = stdout === 'gone' || stderr === 'gone';
  const out = stdout === undefined ? '' : `1>${redirection[stdout]}`;
  const err = stderr === undefined ? '' : `2>${redirection[stderr]}`;
  const end = hasReader ? `${out} ${err} 7>&-` : `${out} ${err}`;
  return ['bash', '--norc', '-c', `${hasReader ? readerEnds(lines) : ''} exec "$@" ${end}`, 'bash'];
}

export interface LossyOptions {
  readonly cwd: string;
  readonly streams: LossyStreams;
}

/** Runs `writ` to its end. */
export function runLossyWrit(args: readonly string[], { cwd, streams }: LossyOptions): Promise<WritRun> {
  return runWritProcess(args, { cwd, under: lossyShell(streams), entry: writProgram });
}
