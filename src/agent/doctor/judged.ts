// The finding of a check of `writ doctor`: its state, one line of text, and the next step of the operator.
import type { DoctorFinding } from '../../core/status/doctor.js';

export type Judged = Omit<DoctorFinding, 'check'>;

/** @returns a finding that requires nothing of the operator */
export function ok(text: string): Judged {
  return { state: 'ok', text };
}

/** @returns the finding of a check that did not run; `text` has the reason */
export function skip(text: string): Judged {
  return { state: 'skip', text };
}

/**
 * @returns a finding that does not make `writ doctor` fail; without failures its exit code is 1
 * @param next the next step of the operator
 */
export function warn(text: string, next: string): Judged {
  return { state: 'warn', text, next };
}

/**
 * @returns a finding that makes `writ doctor` fail, with the exit code 2
 * @param next the next step of the operator
 * @param code the error code of the finding; left out of it without one
 */
export function fail(text: string, next: string, code?: string): Judged {
  return { state: 'FAIL', text, next, ...(code === undefined ? {} : { code }) };
}

/**
 * Creates the finding for a configuration file that changed after the agent read it. Throws nothing.
 * @param problem CONFIG_CHANGED, as the running agent reports it
 * @returns a warning with its message and code, and the next step `writ reload`; its state is `warn`, so `writ doctor` does not
 *   fail
 */
export function judgeChange({ message, code }: Pick<CheckFailure, 'message' | 'code'>): Judged {
  return { ...warn(message, 'writ reload'), code };
}

/** The part of a WritError or a problem that a finding shows. */
export interface CheckFailure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

/** @returns an error as a finding that makes `writ doctor` fail, with the hint as the next step */
export function failOf({ message, hint, code }: CheckFailure): Judged {
  return fail(message, hint, code);
}

/** @returns the finding of a check that could not run, with a next step that this user has not done yet */
export function couldNotCheck(why: string, uid = process.geteuid?.()): Judged {
  // Root can read everything, so another `sudo writ doctor` would have the same result.
  return warn(`could not be checked: ${why}`, uid === 0 ? 'writ status' : 'sudo writ doctor');
}
