// `writ serve` as a function: serves a repository directory read-only over HTTP. Composes the parts, starts and stops the
// server, and reloads certificates. Writes nothing itself; only the OnlineSigner has access to online keys.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { WritError } from '../core/errors.js';
import { defaultMetadataLimits } from '../core/limits.js';
import { readMaxOpenFiles } from '../platform/process/process-limits.js';
import { uncountedAddresses } from '../platform/serve/admission.js';
import { createListener } from '../platform/serve/listener.js';
import { closeWithin, listen } from '../platform/serve/open-server.js';
import { type ServerLimits, serverLimits } from '../platform/serve/server-limits.js';
import { readTlsFiles, type TlsFiles } from '../platform/serve/tls-files.js';
import type { Logger } from '../platform/telemetry/log.js';
import { createMetrics, type MetricsOptions } from '../platform/telemetry/metrics.js';
import { silentLog } from '../platform/telemetry/silent-log.js';
import { type Clock, systemClock } from '../platform/time/clock.js';
import { accessLog, createRequestTracker } from './access-log.js';
import { createServerApp } from './app.js';
import { createLiveFile } from './files/live-file.js';
import { createRepositoryView } from './resign/repository-view.js';
import { createResigner, type OnlineSigner } from './resign/resigner.js';
import { createServerMetrics } from './server-metrics.js';

export interface ServerOptions {
  /** The directory that `writ init` created. */
  readonly repository: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls?: TlsFiles;
  /** With a signer, the server re-signs snapshot and timestamp before they expire. */
  readonly signer?: OnlineSigner;
  /** The interval in which a server with a signer checks the directory without a request; default 10 s. */
  readonly watchEveryMs?: number;
  /** Silent by default. */
  readonly log?: Logger;
  readonly clock?: Clock;
  readonly limits?: Partial<ServerLimits>;
  /**
   * Addresses of proxies with the connections of many clients; the limit of connections for each address does not apply to
   * them.
   */
  readonly proxies?: readonly string[];
  /** By default only the metrics of Writ. */
  readonly processMetrics?: MetricsOptions['process'];
}

export interface RunningServer {
  /** Without a trailing slash, as `http://127.0.0.1:8080`. */
  readonly url: string;
  /**
   * Reads certificate and key again; does nothing without TLS.
   * @throws WritError TLS_INVALID; the old pair stays in use
   */
  reloadTls(): void;
  /** Accepts no more requests, lets active ones finish until closeDeadlineMs, then closes their connections. */
  close(): Promise<void>;
}

const defaultWatchEveryMs = 10_000;

/**
 * Serves metadata/ and targets/ of a repository, /healthz and /metrics.
 * @throws WritError USAGE without a repository, TLS_INVALID, LISTEN_FAILED
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { repository, tls, signer, clock = systemClock, log = silentLog() } = options;
  const limits = serverLimits(options.limits ?? {}, readMaxOpenFiles());
  requireRepository(repository);
  const metrics = createServerMetrics(await createMetrics({ process: options.processMetrics ?? 'omit' }));
  const listener = createListener({
    limits,
    uncounted: uncountedAddresses(options.proxies ?? []),
    onRefused: (refused) => {
      metrics.refused(refused);
      log.info(refused, 'refused a connection');
    },
    tls: tls && readTlsFiles(tls),
  });
  const view = createRepositoryView(repository);
  const { maxTimestampBytes } = defaultMetadataLimits;
  const timestamp = createLiveFile(repository, 'metadata/timestamp.json', maxTimestampBytes);
  const { watchEveryMs = defaultWatchEveryMs } = options;
  const onResult = metrics.resign;
  const resigner = signer && createResigner({ view, clock, log, signer, watchEveryMs, onResult });
  const tracker = createRequestTracker(clock, [accessLog(log), metrics.request]);
  const parts = { tracker, repository, timestamp, view, metrics, clock, log, limits, listener, resigner };
  const app = createServerApp(parts);
  const server = listener
    .createServer(app.handler)
    .on('clientError', app.refuseMalformed)
    .on('connect', app.refuseConnect);
  const over = new AbortController();
  const watching = listener.watchPace(clock, over.signal);
  const end = async (): Promise<void> => {
    app.refuseNewRequests();
    const closing = closeWithin(server, listener, clock, limits.closeDeadlineMs);
    // Node closes only connections that are idle at that moment. Connections with an active or incomplete request would
    // stay until the deadline.
    const idle = tracker.idle().then(listener.destroyConnections);
    await Promise.all([resigner?.stop(), closing, idle]);
    over.abort();
    await watching;
  };
  const url = await listen(server, options, end);
  // Started after `listen`, because a second server on the same address must fail without having signed anything.
  resigner?.start();
  log.info({ url, repository, onlineKeys: resigner !== undefined }, 'listening');
  return {
    url,
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

/** @throws WritError USAGE if the directory has no metadata directory */
export function requireRepository(repository: string): void {
  const metadata = statSync(join(repository, 'metadata'), { throwIfNoEntry: false });
  if (metadata?.isDirectory()) return;
  throw new WritError('USAGE', `${repository} is not a repository: it has no metadata directory`, {
    hint: 'Give --repository the directory that `writ init` made.',
    facts: { repository },
  });
}
