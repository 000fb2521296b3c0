// The sockets: plain or TLS, with every bound that stands before a request is understood.
// Knows nothing of the repository; fastify asks it for one server an address.
import * as http from 'node:http';
import * as https from 'node:https';
import type { BlockList, Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import type { FastifyServerFactory } from 'fastify';
import type { RefusedConnection } from './access-log.js';
import { createAdmission } from './admission.js';
import { answerInTurn, type Turns } from './answer-in-turn.js';
import type { ServerLimits } from './server-limits.js';

export interface Listener {
  readonly serverFactory: FastifyServerFactory;
  /** New connections get this certificate; those that are open keep theirs. */
  replaceTls(tls: SecureContextOptions): void;
  /** True while an answer is under way on this connection. */
  isAnswering(socket: Socket): boolean;
  /** Ends every connection, whatever it is doing. */
  destroyConnections(): void;
}

export interface ListenerOptions {
  readonly limits: ServerLimits;
  /** Addresses that may hold as many connections as there are. */
  readonly uncounted: BlockList;
  readonly onRefused: (refused: RefusedConnection) => void;
  /** Left out for plain HTTP. */
  readonly tls?: SecureContextOptions | undefined;
}

type Server = http.Server | https.Server;

export function createListener(options: ListenerOptions): Listener {
  const { limits, uncounted, onRefused, tls } = options;
  const admission = createAdmission(limits.maxConnectionsPerAddress, uncounted);
  // More than one, because `localhost` is two addresses.
  const servers: Server[] = [];
  const turns: Turns[] = [];
  const sockets = new Set<Socket>();
  const admit = (socket: Socket): boolean => {
    if (!admission.admits(socket)) {
      onRefused({ reason: 'address', remote: socket.remoteAddress ?? '' });
      refuse(socket, tls === undefined ? tooMany : '');
      return false;
    }
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return true;
  };
  return {
    serverFactory: (handler) => {
      const inTurn = answerInTurn(limits.maxWaitingRequests, handler, ({ remoteAddress = '' }) =>
        onRefused({ reason: 'pipelining', remote: remoteAddress }),
      );
      const server = createServer(limits, tls, inTurn.listener);
      server.on('drop', (data) => onRefused({ reason: 'connections', remote: data?.remoteAddress ?? '' }));
      admitOnly(server, admit);
      servers.push(server);
      turns.push(inTurn);
      return server;
    },
    replaceTls: (next) => {
      for (const server of servers) if (server instanceof https.Server) server.setSecureContext(next);
    },
    isAnswering: (socket) => turns.some((one) => one.isAnswering(socket)),
    destroyConnections: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
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
  // Node would answer an Expect by itself, out of turn; no body is ever wanted here.
  server.on('checkContinue', listener).on('checkExpectation', listener);
  server.maxHeadersCount = limits.maxHeaders;
  server.maxConnections = limits.maxConnections;
  // Without a listener for 'timeout', Node destroys the socket: a peer that reads nothing holds no descriptor.
  server.timeout = limits.idleTimeoutMs;
  return server;
}

/** Neither parser nor TLS sees a connection that is not let in. */
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
  // Written or not: who is refused holds nothing.
  socket.end(answer, () => socket.destroy());
}
