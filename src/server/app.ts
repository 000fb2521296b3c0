// One request from its first byte to its answer: what is refused, which file is meant, what is said.
// Owns fastify's instance; sockets are listener's, and the life of the server is server's.
import type { Socket } from 'node:net';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Logger } from '../platform/telemetry/log.js';
import type { Clock } from '../platform/time/clock.js';
import type { RequestTracker } from './access-log.js';
import type { LiveFile } from './files/live-file.js';
import { parseRequestPath, type RequestPath } from './files/request-path.js';
import { sendAbsent, sendImmutable, sendLive } from './files/send-file.js';
import { openServedFile } from './files/served-file.js';
import { judgeHealth } from './health.js';
import type { Listener } from './listener.js';
import type { RepositoryView } from './resign/repository-view.js';
import type { Resigner } from './resign/resigner.js';
import type { ServerLimits } from './server-limits.js';
import type { ServerMetrics } from './server-metrics.js';

interface AppParts {
  readonly repository: string;
  readonly timestamp: LiveFile;
  readonly view: RepositoryView;
  readonly metrics: ServerMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: ServerLimits;
  readonly listener: Listener;
  readonly tracker: RequestTracker;
  /** Absent without online keys. */
  readonly resigner: Resigner | undefined;
}

/** @returns the instance, ready to listen. */
export function createApp(parts: AppParts): FastifyInstance {
  const { log, limits, listener, tracker } = parts;
  const paths = new WeakMap<FastifyRequest, RequestPath>();
  const app = fastify({
    serverFactory: listener.serverFactory,
    // The router sees one address of ours: what a client wrote is read by request-path alone.
    rewriteUrl: () => '/',
    clientErrorHandler: (error, socket) => refuseMalformed(error, socket, parts),
  });
  app.removeAllContentTypeParsers();
  app.addHook('onRequest', (request, reply, done) => {
    const path = parseRequestPath(request.originalUrl);
    paths.set(request, path);
    tracker.track(request, reply, path.kind);
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
      const path: RequestPath = paths.get(request) ?? { kind: 'none' };
      return answers[path.kind]({ request, reply, parts, file: 'file' in path ? path.file : '' });
    },
  });
  return app;
}

/** A cache may believe for this long that there is no next root: a rotation is seen at most that much later. */
const nextRootMaxAgeSeconds = 5;

interface Asked {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly parts: AppParts;
  /** Below the repository; empty for what is no file of it. */
  readonly file: string;
}

type Answer = (asked: Asked) => FastifyReply | Promise<FastifyReply>;

const answers: Readonly<Record<RequestPath['kind'], Answer>> = {
  timestamp: answerTimestamp,
  root: (asked) => answerFile(asked, nextRootMaxAgeSeconds),
  metadata: (asked) => answerFile(asked, 0),
  target: (asked) => answerFile(asked, 0),
  health: answerHealth,
  metrics: answerMetrics,
  none: ({ reply }) => sendAbsent(reply, 0),
};

function answerFile({ request, reply, parts, file }: Asked, absentForSeconds: number): FastifyReply {
  const opened = openServedFile(parts.repository, file);
  return opened === undefined
    ? sendAbsent(reply, absentForSeconds)
    : sendImmutable(request, reply, opened, file);
}

function answerTimestamp({ request, reply, parts }: Asked): FastifyReply {
  const { timestamp, resigner, view } = parts;
  // A publish without the online keys changes the directory: the first host to ask starts the signing.
  if (resigner !== undefined && view.changed()) resigner.wake();
  const live = timestamp.read();
  return live === undefined ? sendAbsent(reply, 0) : sendLive(request, reply, live);
}

function answerHealth({ reply, parts: { view, clock, resigner } }: Asked): FastifyReply {
  const resign = resigner?.status();
  const nowMs = clock.nowMs();
  const health = judgeHealth({ state: view.current(), nowMs, resign });
  reply.code(health.status === 'critical' ? 503 : 200).header('cache-control', 'no-store');
  return reply.send(health);
}

async function answerMetrics({ reply, parts: { view, clock, metrics } }: Asked): Promise<FastifyReply> {
  const text = await metrics.text(view.current(), clock.nowMs());
  return reply.header('cache-control', 'no-store').type(metrics.contentType).send(text);
}

function refusalOf(
  request: FastifyRequest,
  limits: ServerLimits,
): { readonly status: 405 | 413 | 414; readonly text: string } | undefined {
  const { method, headers } = request.raw;
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'GET and HEAD only\n' };
  if (Buffer.byteLength(request.originalUrl) > limits.maxUrlBytes) {
    return { status: 414, text: 'the address is too long\n' };
  }
  const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
  return hasBody ? { status: 413, text: 'no request bodies\n' } : undefined;
}

const statusOfClientError: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};

/** What never became a request: not HTTP, too many headers, or too slow. */
function refuseMalformed(
  error: Error & { readonly code: string },
  socket: Socket,
  { log, listener }: AppParts,
): void {
  // Its request, if there was one, is in the log as not complete.
  if (error.code === 'ECONNRESET') return void socket.destroy();
  const status = statusOfClientError[error.code] ?? '400 Bad Request';
  log.info({ code: error.code, remote: socket.remoteAddress ?? '' }, 'not a request');
  // Amid an answer it would be taken for bytes of the file.
  const mayAnswer = socket.writable && !listener.isAnswering(socket);
  if (mayAnswer) socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.destroy(error);
}
