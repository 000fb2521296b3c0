// Creates and sends a report: opens the fleet state at its first use, creates a report of the current status, and does one
// exchange with the server. Shared by the agent and a standalone pull, which decide when to report.
import type { FleetConfig } from '../../core/config/config.js';
import type { FleetReport } from '../../core/fleet/report.js';
import type { StatusReport } from '../../core/status/status.js';
import { createProxies } from '../../platform/net/proxies.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Host } from '../state/host.js';
import { type FleetHostState, openHostState } from './host-state.js';
import { type HostIdentity, makeReport, type ReportSender } from './make-report.js';
import { outcomeOfEnd } from './outcome-rules.js';
import { createFactsReader } from './report-facts.js';
import { type Acknowledged, sendReport } from './send-report.js';

export interface ReportSourceOptions {
  /** Called for every report, because a reload may replace the host. */
  readonly host: () => Host;
  readonly identity: () => HostIdentity;
  readonly status: () => StatusReport;
  readonly sender: ReportSender;
}

export interface Sending {
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ReportSource {
  /** @returns undefined before the first call of another method */
  known(): FleetHostState | undefined;
  /** Creates a report of the current status. @throws WritError FLEET_STATE_DAMAGED, DISK_* */
  make(fleet: FleetConfig, everyMs: number): FleetReport;
  /** Does one exchange with the server. @throws WritError FLEET_*, DISK_* */
  send(fleet: FleetConfig, sending: Sending): Promise<Acknowledged>;
  /** Stores the outcome of a cycle until a server has stored it. @throws WritError as make */
  note(end: CycleEnd): void;
}

/** @returns a source that opens the fleet state at the first call that needs it */
export function createReportSource({ host, identity, status, sender }: ReportSourceOptions): ReportSource {
  const facts = createFactsReader();
  let state: FleetHostState | undefined;
  const opened = (): FleetHostState => {
    const { paths, durable } = host();
    state ??= openHostState({ directory: paths.fleet, durable, installId: identity().installId });
    return state;
  };
  const make: ReportSource['make'] = ({ detail }, everyMs) => {
    const now = status();
    const { generation, trust } = now;
    const rootVersion = trust.find(({ role }) => role === 'root')?.version;
    const { pending, dropped } = opened().outcomes();
    const read = facts.read(host(), { generation, rootVersion });
    return makeReport(now, {
      ...read,
      sender,
      identity: identity(),
      detail,
      everyMs,
      outcomes: pending,
      dropped,
    });
  };
  return {
    known: () => state,
    make,
    send: (config, { everyMs, timeoutMs, signal }) => {
      const { clock, config: all } = host();
      const proxies = createProxies(all.proxy);
      const exchange = { config, proxies, state: opened(), clock, timeoutMs, signal };
      return sendReport(exchange, identity(), () => make(config, everyMs));
    },
    note: ({ result }) => {
      const outcome = outcomeOfEnd(result);
      if (outcome !== undefined) opened().note(outcome);
    },
  };
}
