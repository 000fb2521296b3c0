// What this host has to tell, and the way it is told: the documents of its fleet, opened when they are first needed, a report
// made of the status of now, and one exchange. Shared by the agent and a pull without one; when, is theirs to know.
import type { FleetConfig } from '../../core/config/config.js';
import type { FleetReport } from '../../core/fleet/report.js';
import type { StatusReport } from '../../core/status/status.js';
import { createProxies } from '../../platform/net/proxies.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Host } from '../state/host.js';
import { type HostState, openHostState } from './host-state.js';
import { type HostIdentity, makeReport, type Speaker } from './make-report.js';
import { outcomeOfEnd } from './outcome-rules.js';
import { createFactsReader } from './report-facts.js';
import { type Acknowledged, sendReport } from './send-report.js';

export interface ReportSourceOptions {
  /** Asked each time: a reload may have replaced it. */
  readonly host: () => Host;
  readonly identity: () => HostIdentity;
  readonly status: () => StatusReport;
  readonly speaker: Speaker;
}

export interface Sending {
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ReportSource {
  /** Undefined before anything was made, sent or noted. */
  known(): HostState | undefined;
  /** @throws WritError FLEET_STATE_DAMAGED, DISK_* */
  make(fleet: FleetConfig, everyMs: number): FleetReport;
  /** @throws WritError FLEET_*, DISK_* */
  send(fleet: FleetConfig, sending: Sending): Promise<Acknowledged>;
  /** Keeps the outcome of a cycle until a server has stored it. @throws WritError as make */
  note(end: CycleEnd): void;
}

export function createReportSource({ host, identity, status, speaker }: ReportSourceOptions): ReportSource {
  const facts = createFactsReader();
  let state: HostState | undefined;
  const opened = (): HostState => {
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
      speaker,
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
