// What it means for the exit code that an answer could not be written: a failure of a command that only answers, and nothing
// for one that changes something. Pure.
import type { TextLosses } from '../../platform/telemetry/standard-streams.js';
import type { Answer, CommandDefinition } from './command.js';
import type { CommonFlags } from './flags.js';

/** @returns whether the command changes nothing as it was typed, so that its answer is all that it is for */
export function onlyAnswers(
  { acts }: Pick<CommandDefinition, 'acts'>,
  args: readonly (string | undefined)[],
  flags: CommonFlags,
): boolean {
  const isDryRun = 'dryRun' in flags && flags.dryRun === true;
  return isDryRun || acts?.(args, flags) !== true;
}

export interface LostAnswer {
  readonly answer: Answer;
  /** Of the command, had the answer been written; 130 also where a lost answer ended it. */
  readonly exitCode: number;
  readonly isOnlyAnswer: boolean;
  readonly failureExitCode: number | undefined;
}

/** @returns the exit code of a command with an answer that could not be printed */
export function exitCodeOfLostAnswer({ answer, exitCode, ...rest }: LostAnswer): number {
  // What is shown once, as a new passphrase, cannot be had in another way.
  const isNeeded = rest.isOnlyAnswer || (answer.kept ?? []).length > 0;
  return isNeeded && (exitCode === 0 || exitCode === 130) ? (rest.failureExitCode ?? 1) : exitCode;
}

/** @returns a warning; none for a reader that went away, because it has read as much as it wanted */
export function lostAnswerWarning({ lines, code }: TextLosses): string[] {
  if (code === 'EPIPE') return [];
  return [`${lines === 1 ? '1 line' : `${lines} lines`} of the answer could not be written (${code})`];
}
