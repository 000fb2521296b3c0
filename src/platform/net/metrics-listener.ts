// The door for Prometheus: GET /metrics over a TCP address or a unix socket, and nothing else. Owns its bounds: a client that
// is slow, or one of many, costs a little memory and never time of a cycle.
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isSystemError, WritError } from '../../core/errors.js';
import type { DurableFs } from '../disk/durable-fs.js';
import { closeWhenIdle, listenUnix } from './unix-socket.js';

export interface MetricsListenerOptions {
  readonly at:
    | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
    | { readonly kind: 'unix'; readonly path: string };
  readonly durable: DurableFs;
  /** The page, made anew for each request. */
  readonly text: () => Promise<string>;
  readonly contentType: string;
}

export interface MetricsListener {
  /** Where it listens really, as `127.0.0.1:9464` or a path. */
  readonly address: string;
  close(): Promise<void>;
}

const maxConnections = 16;
const requestTimeoutMs = 5000;
const maxHeaderBytes = 8192;

/** @throws WritError LISTEN_FAILED; SOCKET_PATH_TOO_LONG, SOCKET_IN_USE */
export async function listenForMetrics(options: MetricsListenerOptions): Promise<MetricsListener> {
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    keepAliveTimeout: requestTimeoutMs,
    connectionsCheckingInterval: requestTimeoutMs,
  });
  server.maxConnections = maxConnections;
  server.on('request', (request, response) => {
    const [path] = (request.url ?? '').split('?', 1);
    if (path !== '/metrics') return plain(response, 404, 'metrics are at /metrics\n');
    if (request.method !== 'GET' && request.method !== 'HEAD') return plain(response, 405, 'only GET\n');
    options.text().then(
      (text) => answer(response, 200, text, options.contentType),
      () => plain(response, 500, 'the metrics could not be made\n'),
    );
  });
  const { at } = options;
  if (at.kind === 'tcp') return listenTcp(server, at.host, at.port);
  return listenSocket(server, at.path, options.durable);
}

function plain(response: ServerResponse, status: number, text: string): void {
  answer(response, status, text, 'text/plain; charset=utf-8');
}

function answer(response: ServerResponse, status: number, text: string, contentType: string): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

async function listenTcp(server: Server, host: string, port: number): Promise<MetricsListener> {
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
        server.closeAllConnections();
      }),
  };
}

/**
 * Owner and mode of the socket are the listener's, the protocol is the server's. As that never listens itself, it neither
 * counts its connections nor looks at their times: both are done here.
 */
async function listenSocket(server: Server, path: string, durable: DurableFs): Promise<MetricsListener> {
  const sockets = new Set<Socket>();
  const listener = await listenUnix({
    path,
    mode: 0o660,
    durable,
    onConnection: (socket) => {
      if (sockets.size >= maxConnections) return void socket.destroy();
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      server.emit('connection', socket);
      closeWhenIdle(socket, requestTimeoutMs);
    },
  });
  return {
    address: path,
    close: async () => {
      const closing = listener.close();
      for (const socket of sockets) socket.destroy();
      await closing;
    },
  };
}
