// What `writ doctor` finds: one line a check, how bad it is, and what to do next. Owns the shape and the exit code; what
// the facts of a check mean is judged beside this file, how they are gathered is the agent's. Pure.

/** `skip`: there is nothing to look at here. What could not be looked at is a warning. */
export type DoctorState = 'ok' | 'warn' | 'FAIL' | 'skip';

export type DoctorCheck =
  | 'configuration'
  | 'state'
  | 'permissions'
  | 'agent'
  | 'policy'
  | 'sandbox'
  | 'libraries'
  | 'clock'
  | 'trust'
  | 'proxy'
  | 'server'
  | 'release'
  | 'names'
  | 'workers'
  | 'fleet'
  | 'apparmor';

export interface DoctorFinding {
  readonly check: DoctorCheck;
  readonly state: DoctorState;
  /** For people, in one line. */
  readonly text: string;
  /** What to do about it. */
  readonly next?: string;
  /** The error code behind it, where there is one. */
  readonly code?: string;
}

export interface Diagnosis {
  readonly outcome: 'ok' | 'warning' | 'failure';
  readonly exitCode: 0 | 1 | 2;
  readonly failures: number;
  readonly warnings: number;
}

/** @returns 0 when all is well, 1 with warnings, 2 with failures */
export function diagnose(findings: readonly DoctorFinding[]): Diagnosis {
  const count = (state: DoctorState): number => findings.filter((one) => one.state === state).length;
  const counts = { failures: count('FAIL'), warnings: count('warn') };
  if (counts.failures > 0) return { outcome: 'failure', exitCode: 2, ...counts };
  if (counts.warnings > 0) return { outcome: 'warning', exitCode: 1, ...counts };
  return { outcome: 'ok', exitCode: 0, ...counts };
}
