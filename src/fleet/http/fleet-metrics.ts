// What a fleet server counts, by name. Labels come from fixed sets: neither a host nor a client can make a new one.
import type { FleetSummary } from '../../core/fleet/answers.js';
import type { RefusedConnection } from '../../platform/serve/refused-connection.js';
import { refusalReasons } from '../../platform/serve/refused-connection.js';
import type { Metrics } from '../../platform/telemetry/metrics.js';
import type { ReportVerdict } from '../hosts/report-plan.js';
import { createRepositoryMetrics } from './repository-metrics.js';

export interface FleetMetrics {
  request(route: string, status: number): void;
  refused(refused: Pick<RefusedConnection, 'reason'>): void;
  report(result: ReportVerdict['kind'], durationMs: number): void;
  text(summary: FleetSummary, sessions: number): Promise<string>;
  readonly contentType: string;
}

export function createFleetMetrics(metrics: Metrics): FleetMetrics {
  const requests = metrics.counter({
    name: 'writ_fleet_requests_total',
    help: 'Answered requests by route and status.',
    labels: ['route', 'status'],
  });
  const refused = metrics.counter({
    name: 'writ_fleet_refused_connections_total',
    help: 'Connections that were closed for a bound, by reason.',
    labels: ['reason'],
  });
  const reports = metrics.counter({
    name: 'writ_fleet_reports_total',
    help: 'Reports of hosts whose signature held, by what became of them.',
    labels: ['result'],
  });
  const seconds = metrics.counter({
    name: 'writ_fleet_report_seconds_total',
    help: 'Time from a whole report to its answer, summed up.',
    labels: [],
  });
  const hosts = metrics.gauge({
    name: 'writ_fleet_hosts',
    help: 'Hosts by state; stopped, silent and cloned ones are accepted too.',
    labels: ['state'],
  });
  const offers = metrics.gauge({
    name: 'writ_fleet_offers',
    help: 'Places where an offered release is not active, by why.',
    labels: ['state'],
  });
  const setRepositories = createRepositoryMetrics(metrics);
  const open = metrics.gauge({ name: 'writ_fleet_sessions', help: 'Sessions of people.', labels: [] });
  for (const reason of refusalReasons) refused.add({ reason }, 0);
  for (const result of ['accepted', 'challenge', 'refused', 'unavailable']) reports.add({ result }, 0);
  return {
    request: (route, status) => requests.add({ route, status }),
    refused: ({ reason }) => refused.add({ reason }),
    report: (result, durationMs) => {
      reports.add({ result });
      seconds.add({}, durationMs / 1000);
    },
    text: (summary, sessions) => {
      for (const [state, count] of Object.entries(summary.hosts)) hosts.set({ state }, count);
      for (const state of ['refused', 'rolled-back', 'deferred', 'failed']) {
        const places = summary.offers.filter((one) => one.state === state);
        offers.set(
          { state },
          places.reduce((sum, one) => sum + one.hosts, 0),
        );
      }
      setRepositories(summary);
      open.set({}, sessions);
      return metrics.text();
    },
    contentType: metrics.contentType,
  };
}
