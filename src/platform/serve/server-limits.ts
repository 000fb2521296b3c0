// Every bound on what a client may send or hold, with its default.
// Owns numbers only; listener and server apply them.

export type ServerLimits = Readonly<Record<keyof typeof defaultServerLimits, number>>;

export const defaultServerLimits = {
  maxUrlBytes: 2048,
  /** Request line and headers together. */
  maxHeaderBytes: 8192,
  maxHeaders: 64,
  /** Beyond this, who only keeps a place gives way; where nobody does, the newcomer is closed unanswered. */
  maxConnections: 10_000,
  /** Whole sites sit behind one address. Never more than half of all, but where it is asked for. */
  maxConnectionsPerAddress: 2000,
  /** Of one connection, behind the request that is answered. */
  maxWaitingRequests: 8,
  /** From the first byte of a request to the end of its headers. */
  headersTimeoutMs: 10_000,
  /** From the first byte of a request to its end. */
  requestTimeoutMs: 15_000,
  /** Nothing moves on a connection, or a client takes nothing of its answer. */
  idleTimeoutMs: 60_000,
  /** In each window of an answer under way so much of it has to be taken: 2 kB/s, half of what GPRS gives. */
  slowWindowMs: 300_000,
  minBytesPerWindow: 600_000,
  /** Who took nothing of its answer for so long gives its place to a newcomer, when no other is left. */
  giveWayAfterMs: 10_000,
  /** Between two requests; longer than the minute of usual proxies, so that it is they who close. */
  keepAliveTimeoutMs: 65_000,
  tlsHandshakeTimeoutMs: 10_000,
  /** How long close() lets requests under way finish. */
  closeDeadlineMs: 30_000,
};

/** For what is no connection: the program itself, its log, the files of the repository that are read in passing. */
const reservedDescriptors = 64;

/**
 * @param maxOpenFiles what the kernel gives this process: each connection needs a socket and the file that it is sent
 * @returns the given limits, the others by default, as far as they can be kept
 */
export function serverLimits(given: Partial<ServerLimits>, maxOpenFiles: number): ServerLimits {
  const limits = { ...defaultServerLimits, ...given };
  const room = Math.max(1, Math.floor((maxOpenFiles - reservedDescriptors) / 2));
  const maxConnections = Math.min(limits.maxConnections, room);
  const half = Math.ceil(maxConnections / 2);
  const maxConnectionsPerAddress =
    given.maxConnectionsPerAddress ?? Math.min(limits.maxConnectionsPerAddress, half);
  return { ...limits, maxConnections, maxConnectionsPerAddress };
}
