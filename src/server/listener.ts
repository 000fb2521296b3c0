// The sockets: plain or TLS, with every bound that stands before a request is understood.
// Knows nothing of the repository; fastify asks it for one server an address.
import * as http from 'node:http';
import * as https from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import type { FastifyServerFactory } from 'fastify';
import type { ServerLimits } from './server-limits.js';

export interface Listener {
  readonly serverFactory: FastifyServerFactory;
  /** New connections get this certificate; those that are open keep theirs. */
  replaceTls(tls: SecureContextOptions): void;
  /** Ends the connections that wait for a next request. */
  destroyIdleConnections(): void;
  /** Ends every connection, whatever it is doing. */
  destroyConnections(): void;
}

/** @param tls undefined for plain HTTP. */
export function createListener(limits: ServerLimits, tls?: SecureContextOptions): Listener {
  // More than one, because `localhost` is two addresses.
  const servers: (http.Server | https.Server)[] = [];
  return {
    serverFactory: (handler) => {
      const server = createServer(limits, tls, handler);
      servers.push(server);
      return server;
    },
    replaceTls: (next) => {
      for (const server of servers) if (server instanceof https.Server) server.setSecureContext(next);
    },
    destroyIdleConnections: () => {
      for (const server of servers) server.closeIdleConnections();
    },
    destroyConnections: () => {
      for (const server of servers) server.closeAllConnections();
    },
  };
}

function createServer(
  limits: ServerLimits,
  tls: SecureContextOptions | undefined,
  handler: http.RequestListener,
): http.Server | https.Server {
  const options = {
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, 5000),
  };
  const server =
    tls === undefined
      ? http.createServer(options, handler)
      : https.createServer({ ...options, ...tls, handshakeTimeout: limits.tlsHandshakeTimeoutMs }, handler);
  server.maxHeadersCount = limits.maxHeaders;
  server.maxConnections = limits.maxConnections;
  // Without a listener for 'timeout', Node destroys the socket: a peer that reads nothing holds no descriptor.
  server.timeout = limits.idleTimeoutMs;
  return server;
}
