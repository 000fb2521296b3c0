// What the end of a user's command means (docs/configuration.md).
// Pure: never runs anything. Only an exit code the command chose itself is a verdict; all else is our fault.

/** How a command ended, as run-command reports it. */
export type HookEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'killed'; readonly signal: string }
  | { readonly kind: 'timed-out' | 'aborted' }
  | { readonly kind: 'not-started'; readonly reason: string };

/**
 * `ok` go on; `warned` go on and say so; `refused` a verdict on the candidate, remembered; `deferred` not now;
 * `broken` no verdict at all: never remembered, or a full disk would block a good release for ever; `unreachable` it reached
 * nobody, and who is not there has refused nothing.
 */
export type HookVerdictKind = 'ok' | 'warned' | 'refused' | 'deferred' | 'broken' | 'unreachable';

export interface HookVerdict {
  readonly kind: HookVerdictKind;
  /** How it ended, for people, as `exit 3` or `timed out`. */
  readonly reason: string;
  /** Of `broken`: it ran longer than it may. */
  readonly isTimedOut?: true;
}

/** @returns the verdict of a command that ended so. */
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

/** As a shell says it. */
const meanings: Readonly<Record<number, string>> = { 126: ': not executable', 127: ': not found' };
