// The sockets: plain or TLS, with every bound that stands before a request is understood.
// Knows nothing of what is served, and makes one server an address.
import * as http from 'node:http';
import * as https from 'node:https';
import type { BlockList, Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '../time/clock.js';
import { createAdmission } from './admission.js';
import { answerInTurn, type Turns } from './answer-in-turn.js';
import { type Connections, createConnections } from './connections.js';
import type { RefusedConnection } from './refused-connection.js';
import type { ServerLimits } from './server-limits.js';

export interface Listener {
  /** One that does not listen yet. */
  createServer(handler: http.RequestListener): Server;
  /** New connections get this certificate; those that are open keep theirs. */
  replaceTls(tls: SecureContextOptions): void;
  /** True while an answer is under way on this connection. */
  isAnswering(socket: Socket): boolean;
  /** Until the signal: ends connections on which nothing moves, or too little. */
  watchPace(clock: Pick<Clock, 'monotonicMs' | 'sleep'>, signal: AbortSignal): Promise<void>;
  /** Ends every connection, whatever it is doing. */
  destroyConnections(): void;
}

export interface ListenerOptions {
  readonly limits: ServerLimits;
  /** Addresses that may hold as many connections as there are. */
  readonly uncounted: BlockList;
  readonly onRefused: (refused: RefusedConnection) => void;
  /** Left out: no request has a body that anybody reads. */
  readonly bodies?: 'read';
  /** Left out for plain HTTP. */
  readonly tls?: SecureContextOptions | undefined;
}

export type Server = http.Server | https.Server;

export function createListener(options: ListenerOptions): Listener {
  const { limits, uncounted, onRefused, tls, bodies } = options;
  const admission = createAdmission(limits.maxConnectionsPerAddress, uncounted);
  // One for each address that is listened on.
  const servers: Server[] = [];
  const turns: Turns[] = [];
  const tell =
    (reason: RefusedConnection['reason']) =>
    ({ remoteAddress: remote = '' }: Socket): void =>
      onRefused({ reason, remote });
  const connections = createConnections({ limits, onEnded: (socket, why) => tell(why)(socket) });
  const admit = (socket: Socket): boolean => {
    if (!admission.admits(socket)) {
      tell('address')(socket);
      refuse(socket, tls === undefined ? tooMany : '');
      return false;
    }
    if (connections.take(socket)) return true;
    tell('connections')(socket);
    socket.destroy();
    return false;
  };
  return {
    createServer: (handler) => {
      const inTurn = answerInTurn(handler, {
        maxWaiting: limits.maxWaitingRequests,
        onExcess: tell('pipelining'),
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

interface Watching {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly signal: AbortSignal;
  readonly idleTimeoutMs: number;
}

const looksPerTimeout = 12;

/**
 * Not by Node's timeouts of a socket: they give a second one to a client that read anything of what was pending, and know no
 * rate.
 */
async function watchPace(
  connections: Connections,
  { clock, signal, idleTimeoutMs }: Watching,
): Promise<void> {
  const everyMs = idleTimeoutMs / looksPerTimeout;
  let lookedAtMs = clock.monotonicMs();
  for (;;) {
    await clock.sleep(everyMs, signal);
    if (signal.aborted) return;
    const nowMs = clock.monotonicMs();
    // A machine that slept gave nobody this time to read.
    connections.look(Math.min(nowMs - lookedAtMs, everyMs * 2));
    lookedAtMs = nowMs;
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
  // Node would answer an Expect by itself, out of turn.
  server.on('checkExpectation', listener);
  // One more than is taken, so that too many are seen: Node leaves out what comes behind, and says nothing.
  server.maxHeadersCount = limits.maxHeaders + 1;
  return server;
}

function continueThen(listener: http.RequestListener): http.RequestListener {
  return (request, response) => {
    response.writeContinue();
    listener(request, response);
  };
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
