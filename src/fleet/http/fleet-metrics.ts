// The metrics of a fleet server by name. Labels come from fixed sets, so that neither a host nor a client can add one. Assigns each
// number to a metric; those of a summary are in summary-metrics.ts.
import type { FleetSummary } from '../../core/fleet/answers.js';
import { writVersion } from '../../core/version.js';
import type { RefusedConnection } from '../../platform/serve/refused-connection.js';
import { refusalReasons } from '../../platform/serve/refused-connection.js';
import { createMetrics, type Metrics, type MetricsOptions } from '../../platform/telemetry/metrics.js';
import type { CommittedBatch } from '../hosts/ingest.js';
import type { ReportVerdict } from '../hosts/report-plan.js';
import { repositoryGauges } from './repository-metrics.js';
import { namedGauges, plainGauges } from './summary-metrics.js';

/** The numbers of the store, for the gauges; undefined while it does not answer. */
export type StoreNumbers = { readonly summary: FleetSummary; readonly sessions: number } | undefined;

export interface FleetMetrics {
  request(route: string, status: number): void;
  refused(refused: Pick<RefusedConnection, 'reason'>): void;
  report(result: ReportVerdict['kind'], durationMs: number): void;
  batch(batch: CommittedBatch): void;
  webhook(result: 'ok' | 'failed'): void;
  /** @param names `shown`: also by bundle and channel */
  text(facts: StoreNumbers, names: 'hidden' | 'shown'): Promise<string>;
  readonly contentType: string;
}

const secondsBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const batchBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** Registers the metrics. Numbers by bundle and channel are in a second registry, so that `text` can omit them. */
export async function createFleetMetrics(options: MetricsOptions): Promise<FleetMetrics> {
  const [plain, named] = [await createMetrics(options), await createMetrics({ process: 'omit' })];
  const [showPlain, showNamed] = [plainGauges(plain), namedGauges(named)];
  const showRepositories = repositoryGauges(plain);
  const info = plain.gauge({ name: 'writ_fleet_info', help: 'Always 1.', labels: ['version'] });
  info.set({ version: writVersion }, 1);
  const sessions = plain.gauge({ name: 'writ_fleet_sessions', help: 'Sessions of people.', labels: [] });
  return {
    ...countersOf(plain),
    text: async (facts, names) => {
      showPlain(facts?.summary);
      showNamed(facts?.summary);
      showRepositories(facts?.summary);
      sessions.clear();
      if (facts !== undefined) sessions.set({}, facts.sessions);
      return (await plain.text()) + (names === 'shown' ? await named.text() : '');
    },
    contentType: plain.contentType,
  };
}

type Counters = 'request' | 'refused' | 'report' | 'batch' | 'webhook';

function countersOf(metrics: Metrics): Pick<FleetMetrics, Counters> {
  const requests = metrics.counter({
    name: 'writ_fleet_requests_total',
    help: 'Answered requests by route and status.',
    labels: ['route', 'status'],
  });
  const refused = metrics.counter({
    name: 'writ_fleet_refused_connections_total',
    help: 'Connections that were closed because of a bound, by reason.',
    labels: ['reason'],
  });
  const reports = metrics.counter({
    name: 'writ_fleet_reports_total',
    help: 'Reports of hosts with a valid signature, by result.',
    labels: ['result'],
  });
  const batches = metrics.counter({
    name: 'writ_fleet_batches_total',
    help: 'Transactions of reports, by result.',
    labels: ['result'],
  });
  const webhooks = metrics.counter({
    name: 'writ_fleet_webhook_requests_total',
    help: 'Requests to the receiver of the webhook, by result.',
    labels: ['result'],
  });
  const reportSeconds = metrics.histogram({
    name: 'writ_fleet_report_seconds',
    help: 'From a complete report to its answer after the commit.',
    bounds: secondsBounds,
  });
  const commitSeconds = metrics.histogram({
    name: 'writ_fleet_commit_seconds',
    help: 'From the first statement of a batch to the end of its commit: how fast the store is.',
    bounds: secondsBounds,
  });
  const batchReports = metrics.histogram({
    name: 'writ_fleet_batch_reports',
    help: 'Reports that shared a transaction.',
    bounds: batchBounds,
  });
  for (const reason of refusalReasons) refused.add({ reason }, 0);
  for (const result of ['accepted', 'challenge', 'refused', 'unavailable']) reports.add({ result }, 0);
  for (const result of ['ok', 'failed']) webhooks.add({ result }, 0);
  for (const result of ['stored', 'failed']) batches.add({ result }, 0);
  return {
    request: (route, status) => requests.add({ route, status }),
    refused: ({ reason }) => refused.add({ reason }),
    report: (result, durationMs) => {
      reports.add({ result });
      reportSeconds.observe(durationMs / 1000);
    },
    batch: ({ reports: count, durationMs, result }) => {
      batches.add({ result });
      commitSeconds.observe(durationMs / 1000);
      batchReports.observe(count);
    },
    webhook: (result) => webhooks.add({ result }),
  };
}
