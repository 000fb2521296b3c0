// All bounds on what a client may send or hold, with their defaults. Owns only the numbers; listener and server apply them.

export type ServerLimits = Readonly<Record<keyof typeof defaultServerLimits, number>>;

export const defaultServerLimits = {
  maxUrlBytes: 2048,
  /** Request line and headers together. */
  maxHeaderBytes: 8192,
  maxHeaders: 64,
  /** Beyond this, a new connection displaces an idle one. If none is idle, the new one is closed without a response. */
  maxConnections: 10_000,
  /** High, because a whole site may have one address. By default at most half of maxConnections. */
  maxConnectionsPerAddress: 2000,
  /** Queued requests of one connection, behind the current one. */
  maxWaitingRequests: 8,
  /** From the first byte of a request to the end of its headers. */
  headersTimeoutMs: 10_000,
  /** From the first byte of a request to its end. */
  requestTimeoutMs: 15_000,
  /** Longest time without a byte on a connection, or without a byte that the client reads of its response. */
  idleTimeoutMs: 60_000,
  /** In each window, minBytesPerWindow of an active response must be read: 2 kB/s, half of the rate of GPRS. */
  slowWindowMs: 300_000,
  minBytesPerWindow: 600_000,
  /** A connection that read nothing of its response for this time can be displaced if no idle one is left. */
  displaceAfterMs: 10_000,
  /** Between two requests. Longer than the usual minute of proxies, so that the proxy closes the connection. */
  keepAliveTimeoutMs: 65_000,
  tlsHandshakeTimeoutMs: 10_000,
  /** How long close() waits for active requests. */
  closeDeadlineMs: 30_000,
};

/** Descriptors that are not connections: of the program, its log, and files of the repository that are open briefly. */
const reservedDescriptors = 64;

/**
 * @param maxOpenFiles limit of the kernel for this process; each connection needs a socket and an open file
 * @returns the given limits and the defaults of the others, reduced to the limit of the kernel
 */
export function serverLimits(given: Partial<ServerLimits>, maxOpenFiles: number): ServerLimits {
  const limits = { ...defaultServerLimits, ...given };
  const maxPairs = Math.max(1, Math.floor((maxOpenFiles - reservedDescriptors) / 2));
  const maxConnections = Math.min(limits.maxConnections, maxPairs);
  const half = Math.ceil(maxConnections / 2);
  const maxConnectionsPerAddress =
    given.maxConnectionsPerAddress ?? Math.min(limits.maxConnectionsPerAddress, half);
  return { ...limits, maxConnections, maxConnectionsPerAddress };
}
