// What a check of `writ doctor` comes to: how it is, in one line, and what to do next.
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

/** @param problem CONFIG_CHANGED, of the running agent */
export function judgeChange({ message, code }: Pick<Trouble, 'message' | 'code'>): Judged {
  return { ...warn(message, 'writ reload'), code };
}

/** What an error says of itself. */
export interface Trouble {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

export function failOf({ message, hint, code }: Trouble): Judged {
  return fail(message, hint, code);
}

/** @returns a finding for what its check could not look at */
export function couldNotLook(why: string, uid = process.geteuid?.()): Judged {
  // Root sees all that there is: to ask once more as root would say the same.
  return warn(`could not be checked: ${why}`, uid === 0 ? 'writ status' : 'sudo writ doctor');
}
