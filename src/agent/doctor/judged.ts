// The finding of a check of `writ doctor`: its state, one line of text, and the next step of the operator.
import type { DoctorFinding } from '../../core/status/doctor.js';

export type Judged = Omit<DoctorFinding, 'check'>;

export function ok(text: string): Judged {
  return { state: 'ok', text };
}

export function skip(text: string): Judged {
  return { state: 'skip', text };
}

export function warn(text: string, next: string): Judged {
  return { state: 'warn', text, next };
}

export function fail(text: string, next: string, code?: string): Judged {
  return { state: 'FAIL', text, next, ...(code === undefined ? {} : { code }) };
}

/** @param problem CONFIG_CHANGED, as the running agent reports it */
export function judgeChange({ message, code }: Pick<CheckFailure, 'message' | 'code'>): Judged {
  return { ...warn(message, 'writ reload'), code };
}

/** The part of a WritError or a problem that a finding shows. */
export interface CheckFailure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

export function failOf({ message, hint, code }: CheckFailure): Judged {
  return fail(message, hint, code);
}

/** @returns the finding of a check that could not run, with a next step that this user has not done yet */
export function couldNotCheck(why: string, uid = process.geteuid?.()): Judged {
  // Root can read everything, so another `sudo writ doctor` would have the same result.
  return warn(`could not be checked: ${why}`, uid === 0 ? 'writ status' : 'sudo writ doctor');
}
