// What every subject of `writ doctor` is given, the host it looks at, and what it answers: its checks.
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
  /** Left out when it has a mistake: checks that need none go on. */
  readonly config?: AgentConfig | undefined;
  readonly hostStatus: DoctorStatus;
  readonly version: string;
  readonly clock: Clock;
  /** When this program was released; left out: the clock is not compared with it. */
  readonly releasedAtMs?: number | undefined;
  /** What starts the agent of this host. */
  readonly service: ServiceCommands;
  /** Where resolv.conf, hosts and profiles are. */
  readonly etc: string;
}

/** In the order of the report; what a check throws is its finding. */
export type Checks = readonly (readonly [DoctorCheck, () => Findings | Promise<Findings>])[];

type Findings = Judged | readonly Judged[];

export const withoutConfig = skip('skipped until the configuration is valid');

/** @returns what the running agent reports, by its socket or its file; undefined where none answers */
export function agentReportOf({ hostStatus }: Pick<DoctorContext, 'hostStatus'>): StatusReport | undefined {
  return hostStatus.kind === 'agent' || hostStatus.kind === 'file' ? hostStatus.report : undefined;
}

export function reportOf({ hostStatus }: DoctorContext): StatusReport | undefined {
  return hostStatus.report;
}
