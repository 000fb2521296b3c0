// Listening sockets, plain or TLS, with all bounds that apply before a request is parsed. Independent of what is served. Creates one
// server for each address.
import * as http from 'node:http';
import * as https from 'node:https';
import type { BlockList, Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '../time/clock.js';
import { createAdmission } from './admission.js';
import { answerInOrder, type OrderedAnswers } from './answer-in-order.js';
import { type Connections, createConnections } from './connections.js';
import type { RefusedConnection } from './refused-connection.js';
import type { ServerLimits } from './server-limits.js';

export interface Listener {
  /** @returns a server that does not listen yet */
  createServer(handler: http.RequestListener): Server;
  /** Uses another certificate for new connections. Open ones keep theirs. */
  replaceTls(tls: SecureContextOptions): void;
  /** @returns whether a response is incomplete on this connection */
  isAnswering(socket: Socket): boolean;
  /** Closes idle and too slow connections until the signal aborts. */
  watchPace(clock: Pick<Clock, 'monotonicMs' | 'sleep'>, signal: AbortSignal): Promise<void>;
  /** Closes every connection at once. */
  destroyConnections(): void;
}

export interface ListenerOptions {
  readonly limits: ServerLimits;
  /** Addresses without a bound of their own. */
  readonly uncounted: BlockList;
  readonly onRefused: (refused: RefusedConnection) => void;
  /** Undefined: the handler reads no bodies. */
  readonly bodies?: 'read';
  /** Undefined: plain HTTP. */
  readonly tls?: SecureContextOptions | undefined;
}

export type Server = http.Server | https.Server;

/** @returns a listener with bounds that apply to all its servers together; it opens no socket */
export function createListener(options: ListenerOptions): Listener {
  const { limits, uncounted, onRefused, tls, bodies } = options;
  const admission = createAdmission(limits.maxConnectionsPerAddress, uncounted);
  // One server for each listening address.
  const servers: Server[] = [];
  const turns: OrderedAnswers[] = [];
  const reportRefusal =
    (reason: RefusedConnection['reason']) =>
    ({ remoteAddress: remote = '' }: Socket): void =>
      onRefused({ reason, remote });
  const connections = createConnections({ limits, onEnded: (socket, why) => reportRefusal(why)(socket) });
  const admit = (socket: Socket): boolean => {
    if (!admission.admits(socket)) {
      reportRefusal('address')(socket);
      refuse(socket, tls === undefined ? tooMany : '');
      return false;
    }
    if (connections.take(socket)) return true;
    reportRefusal('connections')(socket);
    socket.destroy();
    return false;
  };
  return {
    createServer: (handler) => {
      const inTurn = answerInOrder(handler, {
        maxWaiting: limits.maxWaitingRequests,
        onExcess: reportRefusal('pipelining'),
        onBegun: connections.answerBegun,
        onEnded: connections.answerEnded,
      });
      const server = createServer(limits, tls, inTurn.listener);
      server.on('checkContinue', bodies === 'read' ? continueThen(inTurn.listener) : inTurn.listener);
      admitOnly(server, admit);
      servers.push(server);
      turns.push(inTurn);
      return server;
    },
    replaceTls: (next) => {
      for (const server of servers) if (server instanceof https.Server) server.setSecureContext(next);
    },
    isAnswering: (socket) => turns.some((one) => one.isAnswering(socket)),
    watchPace: (clock, signal) =>
      watchPace(connections, { clock, signal, idleTimeoutMs: limits.idleTimeoutMs }),
    destroyConnections: connections.destroyAll,
  };
}

interface WatchOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly signal: AbortSignal;
  readonly idleTimeoutMs: number;
}

const checksPerTimeout = 12;

/**
 * Replaces Node's socket timeouts, which restart when a client reads a single byte of the pending data, and have no minimum
 * throughput.
 */
async function watchPace(
  connections: Connections,
  { clock, signal, idleTimeoutMs }: WatchOptions,
): Promise<void> {
  const everyMs = idleTimeoutMs / checksPerTimeout;
  let checkedAtMs = clock.monotonicMs();
  for (;;) {
    await clock.sleep(everyMs, signal);
    if (signal.aborted) return;
    const nowMs = clock.monotonicMs();
    // After a suspend of this machine, do not count the time in which clients could not read.
    connections.checkPace(Math.min(nowMs - checkedAtMs, everyMs * 2));
    checkedAtMs = nowMs;
  }
}

function createServer(
  limits: ServerLimits,
  tls: SecureContextOptions | undefined,
  listener: http.RequestListener,
): Server {
  const options = {
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, 5000),
  };
  const server =
    tls === undefined
      ? http.createServer(options, listener)
      : https.createServer({ ...options, ...tls, handshakeTimeout: limits.tlsHandshakeTimeoutMs }, listener);
  // Node itself would answer an unknown Expect header, out of order.
  server.on('checkExpectation', listener);
  // Parse one header more than allowed to detect excess headers, because Node drops further ones without an error.
  server.maxHeadersCount = limits.maxHeaders + 1;
  return server;
}

function continueThen(listener: http.RequestListener): http.RequestListener {
  return (request, response) => {
    response.writeContinue();
    listener(request, response);
  };
}

/** Checks each connection before the parser and TLS get it. */
function admitOnly(server: Server, admit: (socket: Socket) => boolean): void {
  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (admit(socket)) for (const listener of listeners) listener.call(server, socket);
  });
}

const tooMany =
  'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 10\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

function refuse(socket: Socket, answer: string): void {
  socket.on('error', () => undefined);
  // Destroy the socket whether or not the response was written, so that a refused client holds no resources.
  socket.end(answer, () => socket.destroy());
}
