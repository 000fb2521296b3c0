// `writ serve` as a function: a repository directory over HTTP, read-only. Puts the parts together and owns
// the life of the server: start, reload of certificates, end. Holds no secret and writes nothing.
import { statSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { isSystemError, WritError } from '../core/errors.js';
import { defaultMetadataLimits } from '../core/limits.js';
import { type Clock, systemClock } from '../platform/clock.js';
import { type Logger, silentLog } from '../platform/log.js';
import { accessLog, observeRequest, type RequestObserver } from './access-log.js';
import { createListener, type Listener } from './listener.js';
import { createLiveFile, type LiveFile } from './live-file.js';
import { parseRequestPath, type RequestPath } from './request-path.js';
import { sendAbsent, sendImmutable, sendLive } from './send-file.js';
import { openServedFile } from './served-file.js';
import { defaultServerLimits, type ServerLimits } from './server-limits.js';
import { readTlsFiles, type TlsFiles } from './tls-files.js';

export interface ServerOptions {
  /** The directory that `writ init` made. */
  readonly repository: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls?: TlsFiles;
  /** Default: silent. */
  readonly log?: Logger;
  readonly clock?: Clock;
  readonly limits?: Partial<ServerLimits>;
}

export interface RunningServer {
  /** Without a slash at its end, as `http://127.0.0.1:8080`. */
  readonly url: string;
  /**
   * Reads certificate and key again; without TLS it does nothing.
   * @throws WritError TLS_INVALID; the old pair stays in use
   */
  reloadTls(): void;
  /** Takes no more requests, lets those under way finish until closeDeadlineMs, then cuts them off. */
  close(): Promise<void>;
}

/**
 * Serves metadata/ and targets/ of a repository, /healthz and /metrics.
 * @throws WritError USAGE without a repository, TLS_INVALID, LISTEN_FAILED
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { repository, tls, clock = systemClock, log = silentLog() } = options;
  const limits = { ...defaultServerLimits, ...options.limits };
  requireRepository(repository);
  const listener = createListener(limits, tls && readTlsFiles(tls));
  const app = createApp({ repository, clock, log, limits, listener });
  const url = await listen(app, options);
  log.info({ url, repository }, 'listening');
  return {
    url,
    reloadTls: () => {
      if (tls === undefined) return;
      listener.replaceTls(readTlsFiles(tls));
      log.info({ certFile: tls.certFile }, 'certificate read again');
    },
    close: async () => {
      log.info('closing');
      await closeWithin(app, listener, clock, limits.closeDeadlineMs);
      log.info('closed');
    },
  };
}

function requireRepository(repository: string): void {
  const metadata = statSync(join(repository, 'metadata'), { throwIfNoEntry: false });
  if (metadata?.isDirectory()) return;
  throw new WritError('USAGE', `${repository} holds no repository: it has no metadata directory`, {
    hint: 'Give --repository the directory that `writ init` made.',
    facts: { repository },
  });
}

interface AppParts {
  readonly repository: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: ServerLimits;
  readonly listener: Listener;
}

function createApp(parts: AppParts): FastifyInstance {
  const { repository, clock, log, limits, listener } = parts;
  const timestamp = createLiveFile(
    repository,
    'metadata/timestamp.json',
    defaultMetadataLimits.maxTimestampBytes,
  );
  const observers: RequestObserver[] = [accessLog(log)];
  const paths = new WeakMap<FastifyRequest, RequestPath>();
  const app = fastify({
    serverFactory: listener.serverFactory,
    // The router sees one address of ours: what a client wrote is read by request-path alone.
    rewriteUrl: () => '/',
    routerOptions: { ignoreTrailingSlash: false },
  });
  app.removeAllContentTypeParsers();
  app.addHook('onRequest', (request, reply, done) => {
    const path = parseRequestPath(request.originalUrl);
    paths.set(request, path);
    observeRequest(request, reply, path.kind, clock, observers);
    reply.header('x-content-type-options', 'nosniff');
    const refusal = refusalOf(request, limits);
    if (refusal === undefined) return done();
    if (refusal.status === 405) reply.header('allow', 'GET, HEAD');
    // What was refused may be followed by a body that nobody reads.
    void reply.code(refusal.status).header('connection', 'close').type('text/plain').send(refusal.text);
  });
  app.setErrorHandler((error, request, reply) => {
    log.error({ err: error, path: request.originalUrl.slice(0, 256) }, 'a request failed');
    return reply.code(500).header('cache-control', 'no-store').type('text/plain').send('server error\n');
  });
  app.route({
    method: ['GET', 'HEAD'],
    url: '/',
    handler: (request, reply) => {
      const path = paths.get(request) ?? { kind: 'none' };
      return answer({ path, request, reply, repository, timestamp });
    },
  });
  return app;
}

interface Exchange {
  readonly path: RequestPath;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly repository: string;
  readonly timestamp: LiveFile;
}

/** A cache may believe for this long that there is no next root: a rotation is seen at most that much later. */
const nextRootMaxAgeSeconds = 5;

function answer({ path, request, reply, repository, timestamp }: Exchange): FastifyReply {
  switch (path.kind) {
    case 'timestamp': {
      const live = timestamp.read();
      return live === undefined ? sendAbsent(reply, 0) : sendLive(request, reply, live);
    }
    case 'root':
    case 'metadata':
    case 'target': {
      const file = openServedFile(repository, path.file);
      if (file !== undefined) return sendImmutable(request, reply, file, path.file);
      return sendAbsent(reply, path.kind === 'root' ? nextRootMaxAgeSeconds : 0);
    }
    case 'health':
    case 'metrics':
    case 'none':
      return sendAbsent(reply, 0);
  }
  return path satisfies never;
}

interface Refusal {
  readonly status: 405 | 413 | 414;
  readonly text: string;
}

function refusalOf(request: FastifyRequest, limits: ServerLimits): Refusal | undefined {
  const { method, headers } = request.raw;
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'GET and HEAD only\n' };
  if (Buffer.byteLength(request.originalUrl) > limits.maxUrlBytes) {
    return { status: 414, text: 'the address is too long\n' };
  }
  const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
  return hasBody ? { status: 413, text: 'no request bodies\n' } : undefined;
}

async function listen(app: FastifyInstance, options: ServerOptions): Promise<string> {
  const { host, port, tls } = options;
  try {
    await app.listen({ host, port, listenTextResolver: () => '' });
  } catch (error) {
    await app.close();
    if (!isSystemError(error)) throw error;
    throw new WritError('LISTEN_FAILED', `cannot listen on ${host}:${port}: ${error.message}`, {
      facts: { host, port, errno: error.code },
      cause: error,
    });
  }
  const { port: bound } = app.server.address() as AddressInfo;
  const authority = host.includes(':') ? `[${host}]` : host;
  return `${tls === undefined ? 'http' : 'https'}://${authority}:${bound}`;
}

async function closeWithin(
  app: FastifyInstance,
  listener: Listener,
  clock: Clock,
  deadlineMs: number,
): Promise<void> {
  const closed = new AbortController();
  const deadline = clock.sleep(deadlineMs, closed.signal).then(() => {
    if (!closed.signal.aborted) listener.destroyConnections();
  });
  await app.close();
  closed.abort();
  await deadline;
}
