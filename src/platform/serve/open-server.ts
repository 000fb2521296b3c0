// Starts to listen on an address, or fails with the reason, and closes a server within a deadline, whatever its clients do.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { isSystemError, WritError } from '../../core/errors.js';
import type { Clock } from '../time/clock.js';
import type { Listener, Server } from './listener.js';

export interface Address {
  readonly host: string;
  readonly port: number;
  /** Undefined: plain HTTP. */
  readonly tls?: unknown;
}

/**
 * @param end releases the resources of the server if it cannot listen
 * @returns its URL, without a slash at the end
 * @throws WritError LISTEN_FAILED
 */
export async function listen(
  server: Server,
  { host, port, tls }: Address,
  end: () => Promise<void>,
): Promise<string> {
  try {
    await once(server.listen({ host, port }), 'listening');
  } catch (error) {
    await end();
    if (!isSystemError(error)) throw error;
    throw new WritError('LISTEN_FAILED', `cannot listen on ${host}:${port}: ${error.message}`, {
      facts: { host, port, errno: error.code },
      cause: error,
    });
  }
  const { port: bound } = server.address() as AddressInfo;
  const authority = host.includes(':') ? `[${host}]` : host;
  return `${tls === undefined ? 'http' : 'https'}://${authority}:${bound}`;
}

/** Refuses new connections, waits for active requests until the deadline, then closes all. At once if it never listened. */
export async function closeWithin(
  server: Server,
  listener: Listener,
  clock: Clock,
  deadlineMs: number,
): Promise<void> {
  const closed = new AbortController();
  const deadline = clock.sleep(deadlineMs, closed.signal).then(() => {
    if (!closed.signal.aborted) listener.destroyConnections();
  });
  await new Promise((resolve) => server.close(resolve));
  closed.abort();
  await deadline;
}
