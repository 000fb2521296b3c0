// Every bound on what a client may send or hold, with its default.
// Owns numbers only; listener and server apply them.

export interface ServerLimits {
  readonly maxUrlBytes: number;
  /** Request line and headers together. */
  readonly maxHeaderBytes: number;
  readonly maxHeaders: number;
  /** Connections beyond this are closed unanswered. */
  readonly maxConnections: number;
  /** From the first byte of a request to the end of its headers. */
  readonly headersTimeoutMs: number;
  /** From the first byte of a request to its end. */
  readonly requestTimeoutMs: number;
  /** A socket on which nothing moves, in either direction. */
  readonly idleTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly tlsHandshakeTimeoutMs: number;
  /** How long close() lets requests under way finish. */
  readonly closeDeadlineMs: number;
}

export const defaultServerLimits: ServerLimits = {
  maxUrlBytes: 2048,
  maxHeaderBytes: 8192,
  maxHeaders: 64,
  maxConnections: 10_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  idleTimeoutMs: 60_000,
  keepAliveTimeoutMs: 65_000,
  tlsHandshakeTimeoutMs: 10_000,
  closeDeadlineMs: 30_000,
};
