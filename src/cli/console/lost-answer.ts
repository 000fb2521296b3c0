// The exit code if an answer could not be written: a failure for a command that only answers, and no effect for a command that changes
// something. Pure.
import type { TextLosses } from '../../platform/telemetry/standard-streams.js';
import type { Answer, CommandDefinition } from './command.js';
import type { CommonFlags } from './flags.js';

/** @returns true if the command changes nothing with these arguments, so that its answer is its only purpose */
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
  /** The exit code if the answer had been written; 130 also if a lost answer ended the command. */
  readonly exitCode: number;
  readonly isOnlyAnswer: boolean;
  readonly failureExitCode: number | undefined;
}

/**
 * @returns the exit code of a command with an answer that could not be printed: failureExitCode (1 if left out) in place of 0 or
 *   130 if the answer is needed; else its own exit code
 */
export function exitCodeOfLostAnswer({ answer, exitCode, ...rest }: LostAnswer): number {
  // A secret that is shown once, such as a new passphrase, cannot be printed again.
  const isNeeded = rest.isOnlyAnswer || (answer.kept ?? []).length > 0;
  return isNeeded && (exitCode === 0 || exitCode === 130) ? (rest.failureExitCode ?? 1) : exitCode;
}

/** @returns a warning; none if the reader closed the pipe, because it has read as much as it wanted */
export function lostAnswerWarning({ lines, code }: TextLosses): string[] {
  if (code === 'EPIPE') return [];
  return [`${lines === 1 ? '1 line' : `${lines} lines`} of the answer could not be written (${code})`];
}
