// The result of `writ doctor`: one finding for each check, with its state and the next step. Defines the shape and the exit
// code. The agent collects the facts of each check and judges them.

/** `skip`: the check does not apply to this host. A check that could not be made is `warn`. */
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
  /** One line for operators. */
  readonly text: string;
  /** The next step of the operator. */
  readonly next?: string;
  /** Error code of the cause, if there is one. */
  readonly code?: string;
}

export interface Diagnosis {
  readonly outcome: 'ok' | 'warning' | 'failure';
  readonly exitCode: 0 | 1 | 2;
  readonly failures: number;
  readonly warnings: number;
}

/** @returns exit code 2 with failures, 1 with warnings, otherwise 0; and the counts */
export function diagnose(findings: readonly DoctorFinding[]): Diagnosis {
  const count = (state: DoctorState): number => findings.filter((one) => one.state === state).length;
  const counts = { failures: count('FAIL'), warnings: count('warn') };
  if (counts.failures > 0) return { outcome: 'failure', exitCode: 2, ...counts };
  if (counts.warnings > 0) return { outcome: 'warning', exitCode: 1, ...counts };
  return { outcome: 'ok', exitCode: 0, ...counts };
}
