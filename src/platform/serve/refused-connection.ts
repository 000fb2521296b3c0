// Reasons for which a connection is closed by a bound, independent of its request. For logs and counters.

/**
 * `connections`: the maximum is reached; `address`: too many of one address; `pipelining`: too many requests before their responses;
 * `displaced`: idle when another client needed a connection; `slow`: its client did not read the response, or too slowly.
 */
export const refusalReasons = ['connections', 'address', 'pipelining', 'displaced', 'slow'] as const;

/** A connection that a bound closed, independent of its request. */
export interface RefusedConnection {
  readonly reason: (typeof refusalReasons)[number];
  readonly remote: string;
}
