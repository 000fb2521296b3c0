// The verdict of a configured command (docs/configuration.md). Only an exit code that the command chose is a verdict about the
// release; every other end is a fault of this host. Pure.

/** The end of a command, as run-command.ts reports it. */
export type HookEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'killed'; readonly signal: string }
  | { readonly kind: 'timed-out' | 'aborted' }
  | { readonly kind: 'not-started'; readonly reason: string };

/**
 * `ok`: continue. `warned`: continue with a warning. `refused`: a verdict about the candidate, which is remembered. `deferred`: try
 * again later. `broken`: no verdict. It is never remembered, because a full disk would otherwise block a good release forever.
 * `unreachable`: the command reached no worker, and a worker that was not reached has refused nothing.
 */
export type HookVerdictKind = 'ok' | 'warned' | 'refused' | 'deferred' | 'broken' | 'unreachable';

export interface HookVerdict {
  readonly kind: HookVerdictKind;
  /** The end as text, as `exit 3` or `timed out`. */
  readonly reason: string;
  /** Only with `broken`: the command exceeded its timeout. */
  readonly isTimedOut?: true;
}

/** @returns the verdict for this end of a command */
export function judgeHook(end: HookEnd): HookVerdict {
  switch (end.kind) {
    case 'exited':
      return {
        kind: judgeExitCode(end.exitCode),
        reason: `exit ${end.exitCode}${meanings[end.exitCode] ?? ''}`,
      };
    case 'killed':
      return { kind: 'broken', reason: `killed by ${end.signal}` };
    case 'timed-out':
      return { kind: 'broken', reason: 'timed out', isTimedOut: true };
    case 'aborted':
      return { kind: 'broken', reason: 'interrupted' };
    case 'not-started':
      return { kind: 'broken', reason: `not started: ${end.reason}` };
  }
}

function judgeExitCode(exitCode: number): HookVerdictKind {
  if (exitCode === 0) return 'ok';
  if (exitCode >= 1 && exitCode <= 31) return 'refused';
  if (exitCode >= 32 && exitCode <= 63) return 'warned';
  // EX_TEMPFAIL of sysexits.h.
  return exitCode === 75 ? 'deferred' : 'broken';
}

/** The meaning of the exit codes of a shell. */
const meanings: Readonly<Record<number, string>> = { 126: ': not executable', 127: ': not found' };
