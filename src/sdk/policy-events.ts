// What a worker may watch of its connection, as a type: for logs and metrics. Owns the shapes and how they are handed
// out; nothing is decided by them, and nobody waits for who watches.

export type PolicyEvent =
  /** The agent has greeted; a generation follows when one is active. */
  | { readonly type: 'connected'; readonly agentVersion: string }
  | { readonly type: 'notified'; readonly generation: number; readonly path: string }
  /** The ack was sent. */
  | { readonly type: 'accepted'; readonly generation: number }
  /** The nack was sent; the reason may be cut on its way. */
  | { readonly type: 'refused'; readonly generation: number; readonly reason: string }
  /** The policy in use stays valid. `reason` has a `code`: AGENT_UNREACHABLE or MESSAGE_MALFORMED. */
  | { readonly type: 'disconnected'; readonly reason: Error; readonly retryInMs: number };

export type EmitPolicyEvent = (event: PolicyEvent) => void;

/**
 * Reporting must not change an answer: a watcher runs behind it, and what it throws is an uncaught exception of the
 * worker, never a nack.
 */
export function emitTo(onEvent: EmitPolicyEvent | undefined): EmitPolicyEvent {
  return (event) => {
    if (onEvent !== undefined) queueMicrotask(() => onEvent(event));
  };
}
