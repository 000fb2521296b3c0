// Why a connection was closed: for a bound, and not for what it asked. Words only, for logs and counters.

/**
 * `connections`: all places are taken; `address`: too many of one address; `pipelining`: requests that did not wait for an
 * answer; `displaced`: it only kept a place that somebody else needed; `slow`: it took nothing of its answer, or too little.
 */
export const refusalReasons = ['connections', 'address', 'pipelining', 'displaced', 'slow'] as const;

/** One that was closed for a bound, and not for what it asked. */
export interface RefusedConnection {
  readonly reason: (typeof refusalReasons)[number];
  readonly remote: string;
}
