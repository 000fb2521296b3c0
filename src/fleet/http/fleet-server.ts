// `writ fleet serve` as a function: a store, hosts that report to it and callers that query it. Connects the parts; starts the server,
// reloads its certificates and closes it. Has no key that could sign policy.
import type { Server } from 'node:http';
import type { WritError } from '../../core/errors.js';
import { writVersion } from '../../core/version.js';
import { readMaxOpenFiles } from '../../platform/process/process-limits.js';
import { uncountedAddresses } from '../../platform/serve/admission.js';
import { createListener } from '../../platform/serve/listener.js';
import { closeWithin, listen } from '../../platform/serve/open-server.js';
import { type ServerLimits, serverLimits } from '../../platform/serve/server-limits.js';
import { readTlsFiles, type TlsFiles } from '../../platform/serve/tls-files.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { MetricsOptions } from '../../platform/telemetry/metrics.js';
import type { Clock } from '../../platform/time/clock.js';
import { createIngest } from '../hosts/ingest.js';
import { noteAccepting, runSweeps } from '../hosts/sweeps.js';
import { createFleetQueries } from '../queries/fleet-queries.js';
import {
  type FollowedRepository,
  type FollowOptions,
  followRepositories,
  openRepositories,
} from '../repositories/follow-repositories.js';
import { createRefreshTrigger } from '../repositories/refresh-trigger.js';
import { type FleetStore, openFleetStore } from '../store/open-store.js';
import { runWebhook, type WebhookTarget } from '../webhook/webhook.js';
import { hasSecurePage } from './callers.js';
import { changeRoutes } from './change-routes.js';
import { createApp } from './fleet-app.js';
import { createFleetMetrics, type FleetMetrics } from './fleet-metrics.js';
import { hostRoutes } from './host-routes.js';
import type { IdentityRule } from './identity-rules.js';
import { opaRoutes } from './opa-routes.js';
import { openApi } from './open-api.js';
import { ownRoutes } from './own-routes.js';
import { addPages } from './page-authentication.js';
import { queryRoutes } from './query-routes.js';
import { createRefusalBound } from './refusal-bound.js';
import type { Route } from './routes.js';
import { createSummaryEvents } from './summary-events.js';

export interface FleetServerOptions {
  /** A directory, or a postgres:// URL. */
  readonly store: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls?: TlsFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits?: Partial<ServerLimits>;
  /** Addresses from which many clients connect. */
  readonly proxies?: readonly string[];
  /** The header in which a proxy names a person, and the addresses of the proxy. */
  readonly identity?: IdentityRule;
  /** The receiver that is notified when the state of the fleet changes. */
  readonly webhook?: WebhookTarget;
  /** Address under which people reach this server, for links and cookies; without a slash at its end. Left out: its own address. */
  readonly publicUrl?: string;
  readonly processMetrics: MetricsOptions['process'];
  /** How long ended intervals are kept; left out: 90 days. */
  readonly keepHistoryMs?: number;
  /** The repositories that the server follows, and the directory of their trusted metadata. */
  readonly repositories?: Pick<FollowOptions, 'state' | 'everyMs'> & {
    readonly followed: readonly FollowedRepository[];
  };
}

export interface RunningFleetServer {
  /** Without a slash at its end. */
  readonly url: string;
  readonly fleetId: string;
  /** @throws WritError TLS_INVALID; the old pair stays in use */
  reloadTls(): void;
  /** Resolves when a server of a newer version uses the store (FLEET_STORE_NEWER): this one writes nothing any more. */
  readonly overtaken: Promise<WritError>;
  /** Accepts no more requests, and waits for running ones until closeDeadlineMs; each acknowledged report is stored. */
  close(): Promise<void>;
}

/** A stream of events sends little; the bound on idle connections ends the stream of a client that does not read. */
const ownLimits: Partial<ServerLimits> = { minBytesPerWindow: 0, closeDeadlineMs: 10_000 };

/**
 * Opens the store, starts the HTTP server and the periodic work, and follows the repositories of the options.
 * @returns the running server, which accepts requests already; its owner calls `close`
 * @throws WritError FLEET_STORE_* or PATH_UNSAFE if the store cannot be opened, TLS_INVALID for the certificate or its key,
 *   LISTEN_FAILED for the address. The store is closed again after an error
 */
export async function startFleetServer(options: FleetServerOptions): Promise<RunningFleetServer> {
  const { clock, log, tls } = options;
  const tlsOptions = tls && readTlsFiles(tls);
  const { followed = [] } = options.repositories ?? {};
  const repositories = openRepositories(followed, clock);
  const store = await openFleetStore(options.store, { clock, log });
  const ending = new AbortController();
  try {
    return await serveStore(store, options, { tlsOptions, repositories, ending });
  } catch (error) {
    // All started parts end, so that another server can open the store.
    ending.abort();
    await store.close();
    throw error;
  }
}

interface OpenedParts {
  readonly tlsOptions: ReturnType<typeof readTlsFiles> | undefined;
  readonly repositories: ReturnType<typeof openRepositories>;
  readonly ending: AbortController;
}

async function serveStore(
  store: FleetStore,
  options: FleetServerOptions,
  { tlsOptions, repositories, ending }: OpenedParts,
): Promise<RunningFleetServer> {
  const { clock, log, tls, keepHistoryMs } = options;
  const limits = serverLimits({ ...ownLimits, ...options.limits }, readMaxOpenFiles());
  const metrics = await createFleetMetrics({ process: options.processMetrics });
  const listener = listenerOf(options, { limits, metrics, tls: tlsOptions });
  const bound = createRefusalBound(clock);
  const secure = hasSecurePage({ ...options, hasTls: tls !== undefined });
  const parts = { store, clock, log, metrics, bound, secure, identity: options.identity };
  const queries = createFleetQueries(store.db, store.fleetId, clock);
  const events = createSummaryEvents({ summary: queries.summary, clock, log });
  const ingest = createIngest(store, { clock, log, onBatch: metrics.batch });
  const nowMs = (): number => clock.nowMs();
  const refreshTrigger = createRefreshTrigger();
  const routes = [
    ...hostRoutes({ ...parts, ingest, shared: uncountedAddresses(options.proxies ?? []) }),
    ...opaRoutes(store.db, bound, nowMs),
    ...queryRoutes(queries, events, refreshTrigger),
    ...changeRoutes(store.db, nowMs),
    ...ownRoutes({ ...parts, queries }),
  ];
  const isEnding = (): boolean => ending.signal.aborted;
  const app = await createApp({
    ...parts,
    routes: withDescription(routes),
    addPages: (to) => addPages(to, { ...parts, queries }),
    createServer: (handler) => listener.createServer(handler) as Server,
    isEnding,
  });
  const watching = listener.watchPace(clock, ending.signal);
  // Before the first report, because hosts could not report while no server ran.
  await noteAccepting(store.db, clock.nowMs());
  let sweeping = Promise.resolve();
  const overtaken = new Promise<WritError>((onNewer) => {
    sweeping = runSweeps(store, { clock, log, signal: ending.signal, keepHistoryMs, onNewer });
  });
  let telling = Promise.resolve();
  const { state = '', everyMs = 0 } = options.repositories ?? {};
  const toFollow = { state, everyMs, refreshTrigger, clock, log, signal: ending.signal };
  const following = followRepositories(store, repositories, toFollow);
  const end = async (): Promise<void> => {
    ending.abort();
    events.close();
    await closeWithin(app.server, listener, clock, limits.closeDeadlineMs);
    await ingest.close();
    await Promise.all([watching, sweeping, telling, following]);
    await store.close();
  };
  const url = await listen(app.server, options, end);
  if (options.webhook !== undefined)
    telling = runWebhook(store, {
      ...{ target: options.webhook, link: options.publicUrl ?? url, clock, log, signal: ending.signal },
      ...{ summary: () => queries.summary('view'), onRequest: metrics.webhook },
    });
  log.info({ url, fleet: store.fleetId, store: store.kind }, 'listening');
  return {
    url,
    fleetId: store.fleetId,
    overtaken,
    reloadTls: () => {
      if (tls === undefined) return;
      listener.replaceTls(readTlsFiles(tls));
      log.info({ certFile: tls.certFile }, 'certificate read again');
    },
    close: async () => {
      log.info('closing');
      await end();
      log.info('closed');
    },
  };
}

interface ListenerParts {
  readonly limits: ServerLimits;
  readonly metrics: FleetMetrics;
  readonly tls: ReturnType<typeof readTlsFiles> | undefined;
}

function listenerOf({ proxies, log }: FleetServerOptions, { limits, metrics, tls }: ListenerParts) {
  return createListener({
    limits,
    uncounted: uncountedAddresses(proxies ?? []),
    onRefused: (refused) => {
      metrics.refused(refused);
      log.info(refused, 'refused a connection');
    },
    bodies: 'read',
    tls,
  });
}

function withDescription(routes: readonly Route[]): Route[] {
  const all: Route[] = [
    ...routes,
    {
      method: 'GET',
      url: '/v1/openapi.json',
      summary: 'This description',
      access: 'anyone',
      handle: () => described,
    },
  ];
  const described = openApi(all, writVersion);
  return all;
}
