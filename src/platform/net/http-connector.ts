// The one way in which clients of HTTP connect: a unix socket, or the first address of a name that answers. TLS begins on the
// connection that came about. Owns no bound of an exchange.
import type { buildConnector, Client } from '#undici';
import { given } from '../../core/given.js';
import { systemClock } from '../time/clock.js';
import { type ConnectOptions, openFirstConnection } from './first-connection.js';

export interface ConnectorOptions extends Pick<ConnectOptions, 'timeoutMs' | 'lookup' | 'signal'> {
  /** PEM of the authorities to trust in place of the system's. */
  readonly ca?: string | undefined;
}

type Connector = Extract<Client.Options['connect'], (...args: never[]) => unknown>;

const keepAliveMs = 60_000;

/** @param build undici's own, which the caller has loaded */
export function createConnector(build: typeof buildConnector, options: ConnectorOptions): Connector {
  const { timeoutMs, ca, lookup, signal } = options;
  const secure = build({ timeout: timeoutMs, ...given({ ca }) });
  return (target, done) => {
    const { hostname, protocol } = target;
    const isSecure = protocol === 'https:';
    const port = Number(target.port) || (isSecure ? 443 : 80);
    openFirstConnection({ hostname, port, timeoutMs, clock: systemClock, lookup, signal }).then(
      (socket) => {
        if (isSecure) return secure({ ...target, httpSocket: socket }, done);
        socket.setNoDelay(true).setKeepAlive(true, keepAliveMs);
        done(null, socket);
      },
      (error: Error) => done(error, null),
    );
  };
}
