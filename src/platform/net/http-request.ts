// Sends one HTTP request to a program of this host or site over TCP, TLS or a unix socket. Enforces the deadline and the limit
// of the response. Never follows a redirect, never reuses a connection, and returns failures of the peer as values.
// Repositories are read through http-client.ts, which supports mirrors and downloads.

import type { Client } from '#undici';
import { isSystemError, isWritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Clock } from '../time/clock.js';
import { joinSignals } from '../time/join-signals.js';
import { CertificateTimeError, ConnectError, ProxyError } from './connect-failure.js';
import { createConnector } from './http-connector.js';
import { refusedByProxy } from './http-proxy.js';
import { parseRetryAfterMs } from './http-rules.js';
import { type Proxies, proxyHeaders } from './proxies.js';
import { fitsSocket } from './unix-socket.js';

export interface HttpQuestion {
  /** http or https; with a unix socket its host is used for the Host header only. */
  readonly url: URL;
  readonly unixSocket?: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** PEM of the authorities to trust in place of those of the system. */
  readonly ca?: string;
  /** Left out: no proxy, as for a worker of this host. */
  readonly proxies?: Proxies;
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

export type HttpReply =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly body: string;
      /** Milliseconds of Retry-After, at most maxRetryAfterMs; left out without this header. */
      readonly retryAfterMs?: number;
    }
  /** `reason`: an errno, or each address with its errno; `no answer in N ms`; `aborted`; or a text about an invalid response. */
  | { readonly kind: 'failed'; readonly reason: string; readonly hint?: string };

const maxHeaderBytes = 16_384;
/** Timeout of each connection attempt. The whole request has its own deadline. */
const connectTimeoutMs = 10_000;

/** Loads the modules that the first request needs, so that it does not wait for them. */
export async function loadHttp(): Promise<void> {
  await import('#undici');
}

/** Sends one request. The result contains no part of the request, so that a credential in a header reaches no log. */
export async function askHttp(question: HttpQuestion): Promise<HttpReply> {
  const { clock, timeoutMs, signal, unixSocket, ca, proxies } = question;
  if (unixSocket !== undefined && !fitsSocket(unixSocket)) return failed('the path is too long for a socket');
  const settled = new AbortController();
  const stop = new AbortController();
  using waiting = joinSignals(settled.signal, signal);
  const deadline = clock.sleep(timeoutMs, waiting.signal).then((): HttpReply => {
    stop.abort();
    return failed(signal?.aborted ? 'aborted' : `no answer in ${timeoutMs} ms`);
  });
  // Loaded at the first request, because a command that only reads the configuration of a group does not need it.
  const undici = await import('#undici');
  const client = new undici.Client(question.url.origin, {
    maxHeaderSize: maxHeaderBytes,
    ...(unixSocket === undefined
      ? {
          connect: createConnector(undici, {
            timeoutMs: connectTimeoutMs,
            ca,
            proxies,
            signal: settled.signal,
          }),
        }
      : { socketPath: unixSocket }),
  });
  try {
    return await Promise.race([answerOf(client, question, stop.signal), deadline]);
  } finally {
    settled.abort();
    await client.destroy();
  }
}

async function answerOf(client: Client, question: HttpQuestion, signal: AbortSignal): Promise<HttpReply> {
  const { url, method, headers, body, maxAnswerBytes, clock } = question;
  try {
    const route = url.protocol === 'http:' ? question.proxies?.(url) : undefined;
    const path = `${url.pathname}${url.search}`;
    const response = await client.request({
      path: route === undefined ? path : `${url.origin}${path}`,
      method: method as 'GET',
      headers: {
        ...{ 'user-agent': 'writ', 'accept-encoding': 'identity' },
        ...(route === undefined ? {} : proxyHeaders(route)),
        ...headers,
      },
      signal,
      ...given({ body }),
    });
    if (route !== undefined && ofProxies.has(response.statusCode))
      throw refusedByProxy(route, response.statusCode, `${method} ${url.origin}`, url.host);
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxAnswerBytes) return failed(`its answer is longer than ${maxAnswerBytes} bytes`);
    }
    const later = response.headers['retry-after'];
    const retryAfterMs = parseRetryAfterMs(typeof later === 'string' ? later : later?.[0], clock.nowMs());
    return {
      kind: 'answered',
      status: response.statusCode,
      body: Buffer.concat(chunks).toString('utf8'),
      ...given({ retryAfterMs }),
    };
  } catch (error) {
    return { ...failed(reasonOf(error)), ...(error instanceof ProxyError ? { hint: error.hint } : {}) };
  }
}

/** Statuses of a proxy that does not reach the server (RFC 9110 section 15.6; Squid uses 503). The server did not respond. */
const ofProxies: ReadonlySet<number> = new Set([407, 502, 503, 504]);

function failed(reason: string): HttpReply {
  return { kind: 'failed', reason };
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'HTTPParserError') return 'it does not speak HTTP';
  if (error instanceof CertificateTimeError) return `${error.message} (${error.code})`;
  if (error instanceof ConnectError || error instanceof ProxyError || isWritError(error))
    return error.message;
  if (!isSystemError(error) || error.code === undefined) return String(error);
  if (error.code === 'UND_ERR_SOCKET') return 'closed before its answer was complete';
  return error.code;
}
