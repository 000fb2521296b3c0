// Every bound on what a client may send or hold, with its default.
// Owns numbers only; listener and server apply them.

export type ServerLimits = Readonly<Record<keyof typeof defaultServerLimits, number>>;

export const defaultServerLimits = {
  maxUrlBytes: 2048,
  /** Request line and headers together. */
  maxHeaderBytes: 8192,
  maxHeaders: 64,
  /** Connections beyond this are closed unanswered. */
  maxConnections: 10_000,
  /** Whole sites sit behind one address. Never more than half of all, but where it is asked for. */
  maxConnectionsPerAddress: 2000,
  /** Of one connection, behind the request that is answered. */
  maxWaitingRequests: 8,
  /** From the first byte of a request to the end of its headers. */
  headersTimeoutMs: 10_000,
  /** From the first byte of a request to its end. */
  requestTimeoutMs: 15_000,
  /** A socket on which nothing moves, in either direction. */
  idleTimeoutMs: 60_000,
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
