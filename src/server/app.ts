// Handles one HTTP request: checks it, finds the requested file, and sends the response. The listener manages sockets;
// server.ts starts and stops the server.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Listener } from '../platform/serve/listener.js';
import type { ServerLimits } from '../platform/serve/server-limits.js';
import type { Logger } from '../platform/telemetry/log.js';
import type { Clock } from '../platform/time/clock.js';
import type { RequestTracker } from './access-log.js';
import { answer, answerText, type Headers } from './files/answer.js';
import type { LiveFile } from './files/live-file.js';
import { parseRequestPath, type RequestPath } from './files/request-path.js';
import { sendAbsent, sendImmutable, sendLive } from './files/send-file.js';
import { openServedFile } from './files/served-file.js';
import { judgeHealth } from './health.js';
import type { ServedRepository } from './resign/repository-view.js';
import type { Resigner } from './resign/resigner.js';
import type { ServerMetrics } from './server-metrics.js';

interface AppParts {
  readonly repository: string;
  readonly timestamp: LiveFile;
  readonly view: ServedRepository;
  readonly metrics: ServerMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: ServerLimits;
  readonly listener: Listener;
  readonly tracker: RequestTracker;
  /** Absent without online keys. */
  readonly resigner: Resigner | undefined;
}

export interface App {
  readonly handler: RequestListener;
  /** Responds to bytes that are not an acceptable request: not HTTP, too many headers, or too slow. */
  refuseMalformed(error: Error, socket: Socket): void;
  /** Refuses CONNECT. node:http passes it to no handler, and the connection would end without a response. */
  refuseConnect(request: IncomingMessage, socket: Duplex): void;
  /** Responds to all further requests that the server is stopping. */
  refuseNewRequests(): void;
}

/**
 * @returns the handlers of one server. An error of a request is logged and answered by 500, or ends the connection of
 * a response that has begun.
 */
export function createServerApp(parts: AppParts): App {
  const { log, limits, tracker } = parts;
  let isEnding = false;
  return {
    handler: (request, response) => {
      const url = request.url ?? '';
      const path = parseRequestPath(url);
      tracker.track(request, response, path.kind);
      const refusal = isEnding ? ending : refusalOf(request, limits);
      if (refusal !== undefined) {
        // The connection is closed, because an unread body may follow a refused request.
        return answerText(
          response,
          refusal.status,
          ['Connection', 'close', ...refusal.headers],
          refusal.text,
        );
      }
      const failed = (error: unknown): void => {
        log.error({ err: error, path: url.slice(0, 256) }, 'a request failed');
        if (response.headersSent) response.destroy();
        else answerText(response, 500, ['Cache-Control', 'no-store'], 'server error\n');
      };
      try {
        const file = 'file' in path ? path.file : '';
        void answers[path.kind]({ request, response, parts, file })?.catch(failed);
      } catch (error) {
        failed(error);
      }
    },
    refuseMalformed: (error, socket) => refuseMalformed(error, socket, parts),
    refuseConnect: (_request, socket) => refuseConnect(socket as Socket, parts),
    refuseNewRequests: () => {
      isEnding = true;
    },
  };
}

/** How long a cache may keep the absence of the next root. Hosts learn of a root rotation at most that much later. */
const nextRootMaxAgeSeconds = 5;

interface RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly parts: AppParts;
  /** The path below the repository; empty for addresses that are not a file of it. */
  readonly file: string;
}

type Answer = (asked: RequestContext) => Promise<void> | undefined;

const answers: Readonly<Record<RequestPath['kind'], Answer>> = {
  timestamp: answerTimestamp,
  root: (asked) => answerFile(asked, nextRootMaxAgeSeconds),
  metadata: (asked) => answerFile(asked, 0),
  target: (asked) => answerFile(asked, 0),
  health: answerHealth,
  metrics: answerMetrics,
  none: ({ response }) => void sendAbsent(response, 0),
};

function answerFile({ request, response, parts, file }: RequestContext, absentForSeconds: number): undefined {
  const opened = openServedFile(parts.repository, file);
  if (opened === undefined) sendAbsent(response, absentForSeconds);
  else sendImmutable(request, response, opened, file);
}

function answerTimestamp({ request, response, parts }: RequestContext): undefined {
  const { timestamp, resigner, view } = parts;
  // A publish without the online keys changes the directory. The first request of a host after it starts the signing.
  if (resigner !== undefined && view.changed()) resigner.wake();
  const live = timestamp.read();
  if (live === undefined) sendAbsent(response, 0);
  else sendLive(request, response, live);
}

function answerHealth({ response, parts: { view, clock, resigner } }: RequestContext): undefined {
  const resign = resigner?.status();
  const nowMs = clock.nowMs();
  const health = judgeHealth({ state: view.current(), nowMs, resign });
  answerNow(response, health.status === 'critical' ? 503 : 200, jsonText, JSON.stringify(health));
}

async function answerMetrics({ response, parts: { view, clock, metrics } }: RequestContext): Promise<void> {
  const text = await metrics.text(view.current(), clock.nowMs());
  answerNow(response, 200, metrics.contentType, text);
}

const jsonText = 'application/json; charset=utf-8';

function answerNow(response: ServerResponse, status: number, type: string, text: string): void {
  answer(response, status, ['Content-Type', type, 'Cache-Control', 'no-store'], text);
}

interface Refusal {
  readonly status: 405 | 413 | 414 | 431 | 503;
  readonly headers: Headers;
  readonly text: string;
}

const ending: Refusal = {
  status: 503,
  headers: ['Cache-Control', 'no-store'],
  text: 'the server is stopping\n',
};
const notAllowed: Refusal = {
  status: 405,
  headers: ['Allow', 'GET, HEAD'],
  text: 'only GET and HEAD are allowed\n',
};
const tooLong: Refusal = { status: 414, headers: [], text: 'the address is too long\n' };
const noBodies: Refusal = { status: 413, headers: [], text: 'request bodies are not allowed\n' };

const tooMany: Refusal = { status: 431, headers: [], text: 'too many headers\n' };

function refusalOf(
  { method, url = '', headers, rawHeaders }: IncomingMessage,
  limits: ServerLimits,
): Refusal | undefined {
  if (method !== 'GET' && method !== 'HEAD') return notAllowed;
  if (Buffer.byteLength(url) > limits.maxUrlBytes) return tooLong;
  // A header beyond the limit is not parsed, and could announce a body.
  if (rawHeaders.length > 2 * limits.maxHeaders) return tooMany;
  const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
  return hasBody ? noBodies : undefined;
}

function refuseConnect(socket: Socket, { log, listener }: AppParts): void {
  log.info({ remote: socket.remoteAddress ?? '' }, 'CONNECT refused');
  socket.on('error', () => undefined);
  writeLastResponse(socket, '405 Method Not Allowed\r\nAllow: GET, HEAD', listener);
  socket.destroySoon();
}

/** Writes a last response, but not during another one, because the client would take it for bytes of the file. */
function writeLastResponse(socket: Socket, status: string, listener: Listener): void {
  const mayAnswer = socket.writable && !listener.isAnswering(socket);
  if (mayAnswer) socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

const statusOfClientError: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};

function refuseMalformed(
  error: Error & { readonly code?: string },
  socket: Socket,
  { log, listener }: AppParts,
): void {
  // The access log has recorded the request, if there was one, as not complete.
  if (error.code === 'ECONNRESET') return void socket.destroy();
  const status = statusOfClientError[error.code ?? ''] ?? '400 Bad Request';
  log.info({ code: error.code, remote: socket.remoteAddress ?? '' }, 'not a request');
  writeLastResponse(socket, status, listener);
  socket.destroy(error);
}
