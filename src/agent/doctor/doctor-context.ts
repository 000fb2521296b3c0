// The input of every subject of `writ doctor`, and its result: a list of checks.
import type { AgentConfig } from '../../core/config/config.js';
import type { WritError } from '../../core/errors.js';
import type { ServiceCommands } from '../../core/status/agent-service.js';
import type { DoctorCheck } from '../../core/status/doctor.js';
import type { StatusReport } from '../../core/status/status.js';
import type { Clock } from '../../platform/time/clock.js';
import type { AgentPlaces } from '../config/config-file.js';
import { type Judged, skip } from './judged.js';

/** The status of the host and its source, or the reason why it is unknown; `failed`: unknown to root too. */
export type DoctorStatus =
  | { readonly kind: 'agent' | 'disk'; readonly report: StatusReport }
  | { readonly kind: 'file'; readonly report: StatusReport; readonly ageMs: number }
  | { readonly kind: 'unknown' | 'failed'; readonly why: WritError; readonly report?: StatusReport };

export interface DoctorContext {
  readonly places: AgentPlaces;
  /** Left out if it has a mistake; checks that need no configuration still run. */
  readonly config?: AgentConfig | undefined;
  readonly hostStatus: DoctorStatus;
  readonly version: string;
  readonly clock: Clock;
  /** The release of this program, epoch milliseconds; left out: the clock is not compared with it. */
  readonly releasedAtMs?: number | undefined;
  /** The commands that start and restart the agent of this host. */
  readonly service: ServiceCommands;
  /** Directory of resolv.conf, hosts and AppArmor profiles. */
  readonly etc: string;
}

/** In the order of the report. An error that a check throws becomes its finding. */
export type Checks = readonly (readonly [DoctorCheck, () => Findings | Promise<Findings>])[];

type Findings = Judged | readonly Judged[];

export const withoutConfig = skip('skipped until the configuration is valid');

/** @returns the report of the running agent, by its socket or status file; undefined without either */
export function agentReportOf({ hostStatus }: Pick<DoctorContext, 'hostStatus'>): StatusReport | undefined {
  return hostStatus.kind === 'agent' || hostStatus.kind === 'file' ? hostStatus.report : undefined;
}

/** @returns the report of any source; undefined if the status is unknown */
export function reportOf({ hostStatus }: DoctorContext): StatusReport | undefined {
  return hostStatus.report;
}
