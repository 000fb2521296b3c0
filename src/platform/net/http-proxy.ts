// Connects through a proxy: by a CONNECT tunnel (RFC 9110 section 9.3.6) to an https server, and to the proxy itself for an http
// server, where the request contains the whole URL. Maps the errors of a proxy and limits its response.
import type { Socket } from 'node:net';
import type { Client } from '#undici';
import { isSystemError, isWritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { ProxyRoute } from '../../core/proxy-rules.js';
import { systemClock } from '../time/clock.js';
import { joinSignals } from '../time/join-signals.js';
import { ConnectError, connectFailure, ProxyError } from './connect-failure.js';
import { reachHint } from './http-rules.js';
import { proxyHeaders, sourceText } from './proxies.js';

type Connector = Extract<Client.Options['connect'], (...args: never[]) => unknown>;

interface ProxyOptions {
  readonly client: typeof Client;
  /** Connects to the proxy itself. */
  readonly connect: Connector;
  /** Timeout of the response to CONNECT. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

const maxHeaderBytes = 16_384;

/**
 * Opens a connection through a proxy.
 * @param authority `host:port` of the server; undefined for an http server
 * @throws ProxyError; WritError PROXY_INVALID
 */
export async function connectByProxy(
  route: ProxyRoute,
  authority: string | undefined,
  options: ProxyOptions,
): Promise<Socket> {
  return authority === undefined
    ? openToProxy(route, options.connect)
    : openTunnel(route, authority, options);
}

function openToProxy(route: ProxyRoute, connect: Connector): Promise<Socket> {
  const { protocol, hostname, host, port } = route.url;
  return new Promise((resolve, reject) => {
    connect({ protocol, hostname: withoutBrackets(hostname), host, port }, (error, socket) =>
      error === null ? resolve(socket) : reject(unreached(route, error)),
    );
  });
}

/** Sends CONNECT by the Client of undici. After the head of the response this function owns the socket. */
async function openTunnel(route: ProxyRoute, authority: string, options: ProxyOptions): Promise<Socket> {
  const { timeoutMs } = options;
  const settled = new AbortController();
  const late = new AbortController();
  using waiting = joinSignals(settled.signal, options.signal);
  using ended = joinSignals(late.signal, options.signal);
  const startTimer = async (): Promise<void> => {
    await systemClock.sleep(timeoutMs, waiting.signal);
    if (!waiting.signal.aborted) late.abort();
  };
  const client = new options.client(route.url.origin, {
    maxHeaderSize: maxHeaderBytes,
    connect: (target, done) =>
      options.connect(target, (...[error, socket]) => {
        if (error !== null) return done(error, null);
        void startTimer();
        done(null, socket);
      }),
  });
  try {
    const headers = { host: authority, ...proxyHeaders(route) };
    const { statusCode, socket } = await client.connect({ path: authority, headers, signal: ended.signal });
    if (statusCode >= 200 && statusCode < 300) return socket as Socket;
    socket.on('error', () => undefined).destroy();
    throw refusedByProxy(route, statusCode, `CONNECT ${authority}`, authority);
  } catch (error) {
    const text = `did not answer CONNECT ${authority} in ${timeoutMs} ms`;
    if (late.signal.aborted)
      throw new ProxyError(route.url.origin, { text, errno: 'ETIMEDOUT', hint: reachHint(authority) });
    throw error instanceof ProxyError || isWritError(error) ? error : unreached(route, error);
  } finally {
    settled.abort();
    await client.destroy();
  }
}

/**
 * @returns the error for a request that the proxy refused
 * @param what the request, such as `CONNECT policy.example.net:443`
 * @param server its `host:port`
 */
export function refusedByProxy(route: ProxyRoute, status: number, what: string, server: string): ProxyError {
  const text = `answered ${what} with status ${status}`;
  const hint = status >= 500 ? reachHint(server) : rulesHint(server);
  return new ProxyError(route.url.origin, { text, status, hint: status === 407 ? loginHint(route) : hint });
}

/** @returns the error for a tunnel without a response of the server */
export function silentTunnel(route: ProxyRoute, authority: string, timeoutMs: number): ProxyError {
  const text = `opened a tunnel to ${authority}, and no answer of the server came through it in ${timeoutMs} ms`;
  return new ProxyError(route.url.origin, { text, errno: 'ETIMEDOUT', hint: reachHint(authority) });
}

function loginHint({ from, credentials, credentialsFile }: ProxyRoute): string {
  if (credentialsFile !== undefined) return `Correct the user and the password in ${credentialsFile}.`;
  if (credentials !== undefined) return `Correct the user and the password in ${from}.`;
  const also = from === 'proxy' ? '' : ` The environment has the proxy in ${from}.`;
  return `Set \`proxy\` to a group with \`credentialsFile\`, a file with one line, user:password.${also}`;
}

function rulesHint(server: string): string {
  return `Allow ${server} in the rules of the proxy (host and port), or correct the URL of the server.`;
}

function unreached(route: ProxyRoute, error: unknown): Error {
  if (isWritError(error)) return error;
  const errno = isSystemError(error) ? (error.code ?? error.name) : 'unknown';
  const reason = error instanceof Error ? error.message : String(error);
  const attempts = error instanceof ConnectError ? error.message : undefined;
  const { text } = connectFailure(errno, reason, attempts);
  const where = `Check the proxy, which ${sourceText(route.from)} names.`;
  return new ProxyError(route.url.origin, {
    text: `cannot be used: ${text}`,
    hint: where,
    ...given({ errno }),
  });
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
