// The events of a connection between a worker and its agent, for logs and metrics. They decide nothing, and the connection does not
// wait for their listener.

export type PolicyEvent =
  /** The agent has sent its greeting; a generation follows if one is active. */
  | { readonly type: 'connected'; readonly agentVersion: string }
  | { readonly type: 'notified'; readonly generation: number; readonly path: string }
  /** The ack was sent. */
  | { readonly type: 'accepted'; readonly generation: number }
  /** The nack was sent; the agent may receive a truncated reason. */
  | { readonly type: 'refused'; readonly generation: number; readonly reason: string }
  /** The connection ended. The worker keeps its policy. `reason` has a `code`: AGENT_UNREACHABLE or MESSAGE_MALFORMED. */
  | { readonly type: 'disconnected'; readonly reason: Error; readonly retryInMs: number };

export type EmitPolicyEvent = (event: PolicyEvent) => void;

/**
 * @returns a function that calls the listener in a microtask of its own, so that its error becomes an uncaught exception of the worker,
 *   and never a nack; without a listener it does nothing
 */
export function emitTo(onEvent: EmitPolicyEvent | undefined): EmitPolicyEvent {
  return (event) => {
    if (onEvent !== undefined) queueMicrotask(() => onEvent(event));
  };
}
