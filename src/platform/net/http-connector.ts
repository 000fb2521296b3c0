// Opens the connections of all HTTP clients: to the first address of the server or of a proxy that answers. TLS with the server
// begins on that connection, so that a proxy does not change the verification of a certificate.
import type { Socket } from 'node:net';
import type { DetailedPeerCertificate, SecureContext, TLSSocket } from 'node:tls';
import type { buildConnector, Client } from '#undici';
import type { ProxyRoute } from '../../core/proxy-rules.js';
import { systemClock } from '../time/clock.js';
import { readSystemAuthorities } from './authorities.js';
import { CertificateTimeError, certificateTimeHint } from './connect-failure.js';
import { type ConnectOptions, openFirstConnection } from './first-connection.js';
import { connectByProxy, silentTunnel } from './http-proxy.js';
import { type Proxies, readProxyCa } from './proxies.js';

export interface ConnectorOptions extends Pick<ConnectOptions, 'timeoutMs' | 'lookup' | 'signal'> {
  /** PEM of the authorities to trust in place of those of the system. */
  readonly ca?: string | undefined;
  /** Left out: no proxy. */
  readonly proxies?: Proxies | undefined;
}

/** The parts of undici that connect; the caller loads undici. */
export interface UndiciParts {
  readonly Client: typeof Client;
  readonly buildConnector: typeof buildConnector;
}

type Connector = Extract<Client.Options['connect'], (...args: never[]) => unknown>;

const keepAliveMs = 60_000;

/**
 * @returns a connector for undici. It reports every error to the callback and throws none; certificate authorities are
 * loaded once.
 */
export function createConnector(undici: UndiciParts, options: ConnectorOptions): Connector {
  const { timeoutMs, ca } = options;
  let secure: Promise<Connector> | undefined;
  const loadSecure = (): Promise<Connector> => {
    secure ??= readSecureContext(ca).then((secureContext) =>
      undici.buildConnector({ timeout: timeoutMs, secureContext }),
    );
    // Do not cache a failure: the file may be readable at the next connection.
    secure.catch(() => {
      secure = undefined;
    });
    return secure;
  };
  return (target, done) => {
    const open = async () => {
      const startTls = target.protocol === 'https:' ? await loadSecure() : undefined;
      return { startTls, ...(await openConnection(target, undici, options)) };
    };
    open().then(
      ({ startTls, socket, tunnel }) => {
        const onSecure: typeof done = (...[error, secured]) =>
          error === null ? done(null, secured) : done(inTunnel(error, tunnel, timeoutMs), null);
        if (startTls !== undefined)
          return secureSocket(startTls, { ...target, httpSocket: socket }, onSecure);
        socket.setNoDelay(true).setKeepAlive(true, keepAliveMs);
        done(null, socket);
      },
      (error: Error) => done(error, null),
    );
  };
}

/** @returns a connection before TLS, for a caller that sends no request. @throws ConnectError, ProxyError, WritError PROXY_INVALID */
export async function connectTo(target: Target, options: ConnectorOptions): Promise<Socket> {
  return (await openConnection(target, await import('#undici'), options)).socket;
}

/** A server; an IPv6 address has no brackets. */
type Target = Pick<Parameters<Connector>[0], 'hostname' | 'protocol' | 'port'>;

interface Tunnel {
  readonly route: ProxyRoute;
  /** `host:port` of the server. */
  readonly authority: string;
}

/** Names the proxy in an error of the tunnel, because a proxy may accept CONNECT and not forward. Certificate errors stay. */
function inTunnel(
  error: Error & { readonly code?: string },
  tunnel: Tunnel | undefined,
  timeoutMs: number,
): Error {
  if (tunnel === undefined || error.code !== 'UND_ERR_CONNECT_TIMEOUT') return error;
  return silentTunnel(tunnel.route, tunnel.authority, timeoutMs);
}

/** @returns a connection to the server, or to the proxy of an http server, before any TLS with the server */
async function openConnection(
  { hostname, protocol, port: given }: Target,
  undici: UndiciParts,
  { proxies, ca: _, ...options }: ConnectorOptions,
): Promise<{ readonly socket: Socket; readonly tunnel?: Tunnel }> {
  const isSecure = protocol === 'https:';
  const port = Number(given) || (isSecure ? 443 : 80);
  const host = hostname.includes(':') ? `[${hostname}]` : hostname;
  const route = proxies?.(new URL(`${protocol}//${host}:${port}/`));
  if (route === undefined)
    return { socket: await openFirstConnection({ ...options, hostname, port, clock: systemClock }) };
  const connect = createConnector(undici, { ...options, ca: readProxyCa(route) });
  const { timeoutMs, signal } = options;
  const authority = isSecure ? `${host}:${port}` : undefined;
  const socket = await connectByProxy(route, authority, {
    client: undici.Client,
    connect,
    timeoutMs,
    signal,
  });
  return authority === undefined ? { socket } : { socket, tunnel: { route, authority } };
}

/** Starts TLS. An error of the validity period names it, because the certificate is not available after the connection. */
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

/** @returns the validity period of the first certificate in the chain that is not valid now; undefined if all are valid */
function timeOutside(leaf: DetailedPeerCertificate, nowMs: number): ValidTime | undefined {
  let one: DetailedPeerCertificate | undefined = leaf;
  for (let depth = 0; one?.valid_from !== undefined && depth < maxChain; depth += 1) {
    const [fromMs, toMs] = [Date.parse(one.valid_from), Date.parse(one.valid_to)];
    if (fromMs > nowMs || toMs < nowMs) return { fromMs, toMs, nowMs };
    one = one.issuerCertificate;
  }
  return undefined;
}

/** Reads the authorities at the first TLS connection, because the list of a system needs 50 ms and some megabytes. */
async function readSecureContext(ca: string | undefined): Promise<SecureContext> {
  const { createSecureContext, rootCertificates } = await import('node:tls');
  return createSecureContext({ ca: ca ?? [...readSystemAuthorities(rootCertificates)] });
}
