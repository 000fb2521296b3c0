// The one way in which clients of HTTP connect: a unix socket, or the first address of a name that answers. TLS begins on the
// connection that came about. Owns no bound of an exchange.
import type { SecureContext } from 'node:tls';
import type { buildConnector, Client } from '#undici';
import { systemClock } from '../time/clock.js';
import { readSystemAuthorities } from './authorities.js';
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
  let secure: Promise<Connector> | undefined;
  const loadSecure = (): Promise<Connector> => {
    secure ??= readSecureContext(ca).then((secureContext) => build({ timeout: timeoutMs, secureContext }));
    // A file that could not be read may be there at the next connection.
    secure.catch(() => {
      secure = undefined;
    });
    return secure;
  };
  return (target, done) => {
    const { hostname, protocol } = target;
    const isSecure = protocol === 'https:';
    const port = Number(target.port) || (isSecure ? 443 : 80);
    const open = async () => {
      const startTls = isSecure ? await loadSecure() : undefined;
      const at = { hostname, port, timeoutMs, clock: systemClock, lookup, signal };
      return { startTls, socket: await openFirstConnection(at) };
    };
    open().then(
      ({ startTls, socket }) => {
        if (startTls !== undefined) return startTls({ ...target, httpSocket: socket }, done);
        socket.setNoDelay(true).setKeepAlive(true, keepAliveMs);
        done(null, socket);
      },
      (error: Error) => done(error, null),
    );
  };
}

/** Read at the first connection over TLS: the list of a system takes 50 ms and some megabytes. */
async function readSecureContext(ca: string | undefined): Promise<SecureContext> {
  const { createSecureContext, rootCertificates } = await import('node:tls');
  return createSecureContext({ ca: ca ?? [...readSystemAuthorities(rootCertificates)] });
}
