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
