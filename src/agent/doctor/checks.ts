// What every subject of `writ doctor` is given, the host it looks at, and what it answers: checks, and their findings.
import type { AgentConfig } from '../../core/config/config.js';
import type { WritError } from '../../core/errors.js';
import type { DoctorCheck, DoctorFinding } from '../../core/status/doctor.js';
import type { StatusReport } from '../../core/status/status.js';
import type { Clock } from '../../platform/time/clock.js';
import type { AgentPlaces } from '../config/agent-places.js';

export interface Patient {
  readonly places: AgentPlaces;
  /** Left out when it has a mistake: checks that need none go on. */
  readonly config?: AgentConfig | undefined;
  /** What `writ status` says, or why it cannot. */
  readonly status: StatusReport | WritError;
  readonly version: string;
  readonly clock: Clock;
  /** Where resolv.conf, hosts and profiles are. */
  readonly etc: string;
}

/** In the order of the report; what a check throws is its finding. */
export type Checks = readonly (readonly [DoctorCheck, () => Findings | Promise<Findings>])[];

type Findings = Judged | readonly Judged[];

export type Judged = Omit<DoctorFinding, 'check'>;

export const withoutConfig = skip('waits for a configuration without a mistake');

export function reportOf({ status }: Patient): StatusReport | undefined {
  return status instanceof Error ? undefined : status;
}

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
export function couldNotLook(why: string): Judged {
  return warn(`could not be looked at: ${why}`, 'sudo writ doctor');
}
