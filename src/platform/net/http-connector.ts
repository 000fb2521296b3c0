// The one way in which clients of HTTP connect: a unix socket, or the first address of a name that answers. TLS begins on the
// connection that came about. Owns no bound of an exchange.
import type { DetailedPeerCertificate, SecureContext, TLSSocket } from 'node:tls';
import type { buildConnector, Client } from '#undici';
import { systemClock } from '../time/clock.js';
import { readSystemAuthorities } from './authorities.js';
import { CertificateTimeError, certificateTimeHint } from './connect-failure.js';
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
        if (startTls !== undefined) return secureSocket(startTls, { ...target, httpSocket: socket }, done);
        socket.setNoDelay(true).setKeepAlive(true, keepAliveMs);
        done(null, socket);
      },
      (error: Error) => done(error, null),
    );
  };
}

/** As `startTls`, and an error of time says which time: the certificate is gone with the connection. */
function secureSocket(startTls: Connector, ...[target, done]: Parameters<Connector>): void {
  let outOfTime: ValidTime | undefined;
  const explain = (error: Error & { readonly code?: string }): Error => {
    const { code = '' } = error;
    const isOfTime = certificateTimeHint(code) !== undefined && outOfTime !== undefined;
    return isOfTime ? new CertificateTimeError(code, outOfTime as ValidTime) : error;
  };
  // undici declares no result, and returns the socket.
  const started: unknown = startTls(target, (...[error, socket]) =>
    error === null ? done(null, socket) : done(explain(error), null),
  );
  const secured = started as TLSSocket;
  secured.prependOnceListener('secure', () => {
    outOfTime = timeOutside(secured.getPeerCertificate(true), systemClock.nowMs());
  });
}

interface ValidTime {
  readonly fromMs: number;
  readonly toMs: number;
  readonly nowMs: number;
}

const maxChain = 10;

/** @returns the time of the first certificate of the chain that is not valid now */
function timeOutside(leaf: DetailedPeerCertificate, nowMs: number): ValidTime | undefined {
  let one: DetailedPeerCertificate | undefined = leaf;
  for (let depth = 0; one?.valid_from !== undefined && depth < maxChain; depth += 1) {
    const [fromMs, toMs] = [Date.parse(one.valid_from), Date.parse(one.valid_to)];
    if (fromMs > nowMs || toMs < nowMs) return { fromMs, toMs, nowMs };
    one = one.issuerCertificate;
  }
  return undefined;
}

/** Read at the first connection over TLS: the list of a system takes 50 ms and some megabytes. */
async function readSecureContext(ca: string | undefined): Promise<SecureContext> {
  const { createSecureContext, rootCertificates } = await import('node:tls');
  return createSecureContext({ ca: ca ?? [...readSystemAuthorities(rootCertificates)] });
}
