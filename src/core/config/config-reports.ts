// The keys `metrics` and `events`: where the agent tells machines how it is. Owns their shape, their rules and how they
// become values.
import { socketRule } from './config-bounds.js';
import { at, type Group, group } from './config-walk.js';
import type { Finding } from './findings.js';

/** Where Prometheus asks. */
export type MetricsConfig =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

export interface EventsConfig {
  /** Absolute path of the file that events are appended to. */
  readonly file: string;
}

export interface ReportsFile {
  readonly metrics?: { readonly listen?: string; readonly socket?: string };
  readonly events?: { readonly file: string };
}

/** HOST:PORT; an IPv6 address in brackets. */
export const listenPattern = '^(\\[[0-9a-fA-F:.]{2,45}\\]|[A-Za-z0-9][A-Za-z0-9.-]{0,252}):[0-9]{1,5}$';

/** @returns every rule that these keys break */
export function* reportRules(file: Group): Generator<Finding> {
  const { metrics } = file;
  if (metrics === undefined) return;
  const { listen, socket } = group(metrics);
  if ((listen === undefined) === (socket === undefined))
    yield at(['metrics'], 'must have either listen or socket');
  if (typeof listen === 'string' && Number(listen.slice(listen.lastIndexOf(':') + 1)) > 65_535)
    yield at(['metrics', 'listen'], 'must have a port up to 65535');
  if (typeof socket === 'string') yield* socketRule(socket, ['metrics', 'socket']);
}

/** @param file after schema and rules */
export function buildReports({ metrics, events }: ReportsFile): {
  readonly metrics?: MetricsConfig;
  readonly events?: EventsConfig;
} {
  return {
    ...(metrics === undefined ? {} : { metrics: buildMetrics(metrics) }),
    ...(events === undefined ? {} : { events }),
  };
}

function buildMetrics({ listen, socket = '' }: NonNullable<ReportsFile['metrics']>): MetricsConfig {
  if (listen === undefined) return { kind: 'unix', path: socket };
  const colon = listen.lastIndexOf(':');
  const host = listen.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  return { kind: 'tcp', host, port: Number(listen.slice(colon + 1)) };
}
