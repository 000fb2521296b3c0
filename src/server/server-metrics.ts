// The metrics of the server. Label values come from fixed sets, so that a client cannot create new ones.

import { type RefusedConnection, refusalReasons } from '../platform/serve/refused-connection.js';
import type { Metrics } from '../platform/telemetry/metrics.js';
import type { RequestRecord } from './access-log.js';
import type { ServedState } from './resign/repository-view.js';

export interface ServerMetrics {
  request(record: RequestRecord): void;
  refused(refused: Pick<RefusedConnection, 'reason'>): void;
  resign(result: 'success' | 'failure'): void;
  /** The metrics in the Prometheus text format, with the current state of the repository. */
  text(state: ServedState, nowMs: number): Promise<string>;
  readonly contentType: string;
}

/** Registers all metrics of the server in `metrics`. Must be called once for a registry. */
export function createServerMetrics(metrics: Metrics): ServerMetrics {
  const requests = metrics.counter({
    name: 'writ_server_requests_total',
    help: 'Answered requests by route and status; 304 means that a client had the newest bytes.',
    labels: ['route', 'status'],
  });
  const aborted = metrics.counter({
    name: 'writ_server_aborted_requests_total',
    help: 'Requests that ended before their answer was complete, by route.',
    labels: ['route'],
  });
  const sent = metrics.counter({
    name: 'writ_server_sent_bytes_total',
    help: 'Bytes of answers by route, headers included.',
    labels: ['route'],
  });
  const refused = metrics.counter({
    name: 'writ_server_refused_connections_total',
    help: 'Connections that were closed because of a bound, by reason.',
    labels: ['reason'],
  });
  const resigns = metrics.counter({
    name: 'writ_server_resign_total',
    help: 'Attempts to re-sign snapshot and timestamp, by result.',
    labels: ['result'],
  });
  const expiry = metrics.gauge({
    name: 'writ_repository_expiry_seconds',
    help: 'Seconds until a role expires; negative: expired.',
    labels: ['role'],
  });
  const versions = metrics.gauge({
    name: 'writ_repository_version',
    help: 'Version of a role.',
    labels: ['role'],
  });
  const pending = metrics.gauge({
    name: 'writ_repository_pending_files',
    help: 'Published files that no snapshot lists yet.',
    labels: [],
  });
  for (const result of ['success', 'failure']) resigns.add({ result }, 0);
  for (const reason of refusalReasons) refused.add({ reason }, 0);
  return {
    request: ({ route, status, bytes, complete }) => {
      requests.add({ route, status });
      if (!complete) aborted.add({ route });
      sent.add({ route }, bytes);
    },
    refused: ({ reason }) => refused.add({ reason }),
    resign: (result) => resigns.add({ result }),
    text: (state, nowMs) => {
      expiry.clear();
      versions.clear();
      for (const [role, { version, expiresMs }] of Object.entries(state.roles)) {
        expiry.set({ role }, (expiresMs - nowMs) / 1000);
        versions.set({ role }, version);
      }
      pending.set({}, state.pending.length);
      return metrics.text();
    },
    contentType: metrics.contentType,
  };
}
