// Serves GET /metrics to Prometheus over a TCP address or a unix socket. Bounds the clients: slow or many clients use a little
// memory and never delay a cycle.
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { isSystemError, WritError } from '../../core/errors.js';
import type { DurableFs } from '../disk/durable-fs.js';
import type { Clock } from '../time/clock.js';
import { createConnectionSlots } from './connection-slots.js';
import { closeAfter, listenUnix } from './unix-socket.js';

export interface MetricsListenerOptions {
  readonly at:
    | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
    | { readonly kind: 'unix'; readonly path: string };
  readonly durable: DurableFs;
  /** Creates the page; called for each request. */
  readonly text: () => Promise<string>;
  readonly contentType: string;
  readonly clock: Pick<Clock, 'sleep'>;
}

export interface MetricsListener {
  /** The actual address, such as `127.0.0.1:9464` or a path. */
  readonly address: string;
  close(): Promise<void>;
}

const maxConnections = 16;
/** Timeout of the head of a request. The creation and transfer of the page have answerTimeoutMs. A slower client is closed. */
const requestTimeoutMs = 5000;
const answerTimeoutMs = 10_000;
const maxHeaderBytes = 8192;

/**
 * Listens for Prometheus on a TCP port or Unix socket until `close`. Serves GET and HEAD of /metrics: 200 with `text`, 404 for
 * another path, 405 for another method, 500 if `text` rejects. At most 16 connections are open.
 * @returns after the start of listening; `address` has the actual port for port 0. `close` ends all connections.
 * @throws WritError LISTEN_FAILED; for a Unix socket also SOCKET_PATH_TOO_LONG, SOCKET_IN_USE, PATH_UNSAFE
 */
export async function listenForMetrics(options: MetricsListenerOptions): Promise<MetricsListener> {
  const { at } = options;
  const { accept, end } = createPage(options);
  if (at.kind === 'tcp') return listenTcp(at.host, at.port, accept, end);
  const { path } = at;
  const listener = await listenUnix({ path, mode: 0o660, durable: options.durable, onConnection: accept });
  return {
    address: path,
    close: async () => {
      const closing = listener.close();
      end();
      await closing;
    },
  };
}

interface Page {
  readonly accept: (socket: Socket) => void;
  /** Ends every connection. */
  readonly end: () => void;
}

/**
 * Serves one request per connection, so that no slot waits for a next request. The timeouts are enforced here, because the
 * HTTP server does not listen itself: its own timeouts do not cover passed connections, and every received byte restarts them.
 */
function createPage(options: MetricsListenerOptions): Page {
  const { clock } = options;
  const places = createConnectionSlots(maxConnections);
  const heads = new WeakMap<Socket, () => void>();
  const server = createHttpServer({ maxHeaderSize: maxHeaderBytes });
  server.on('request', (request, response) => {
    heads.get(request.socket)?.();
    const [path] = (request.url ?? '').split('?', 1);
    if (path !== '/metrics') return plain(response, 404, 'metrics are at /metrics\n');
    if (request.method !== 'GET' && request.method !== 'HEAD') return plain(response, 405, 'only GET\n');
    options.text().then(
      (text) => answer(response, 200, text, options.contentType),
      () => plain(response, 500, 'the metrics could not be made\n'),
    );
  });
  return {
    accept: (socket) => {
      const place = places.take(socket);
      if (place === undefined) return void socket.destroy();
      const inTime = closeAfter(socket, requestTimeoutMs, clock);
      heads.set(socket, () => {
        heads.delete(socket);
        inTime.stop();
        place.claim();
        closeAfter(socket, answerTimeoutMs, clock);
      });
      server.emit('connection', socket);
    },
    end: () => {
      for (const socket of places.sockets()) socket.destroy();
    },
  };
}

function plain(response: ServerResponse, status: number, text: string): void {
  answer(response, status, text, 'text/plain; charset=utf-8');
}

function answer(response: ServerResponse, status: number, text: string, contentType: string): void {
  response.writeHead(status, {
    connection: 'close',
    'content-type': contentType,
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

async function listenTcp(
  host: string,
  port: number,
  accept: Page['accept'],
  end: Page['end'],
): Promise<MetricsListener> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    accept(socket);
  });
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, resolve);
    });
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new WritError('LISTEN_FAILED', `cannot listen on ${host}:${port}: ${error.message}`, {
      facts: { host, port, errno: error.code },
      cause: error,
    });
  }
  const bound = server.address();
  const boundPort = typeof bound === 'object' && bound !== null ? bound.port : port;
  return {
    address: `${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        end();
      }),
  };
}
