// HTTP client of repositories: undici with one pool of kept-alive connections per base URL. Enforces deadlines and maps
// network failures to error codes. Rejects content encodings. Follows a redirect only if http-rules allows it. Never buffers
// a body without a limit.
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { Agent, Dispatcher } from '#undici';
import { WritError } from '../../core/errors.js';
import type { TransportLimits } from '../../core/limits.js';
import type { Clock } from '../time/clock.js';
import { type Deadline, startDeadline } from '../time/deadline.js';
import { createConnector } from './http-connector.js';
import { refusedByProxy } from './http-proxy.js';
import {
  describeRoute,
  judgeRedirect,
  parseRetryAfterMs,
  type RedirectRules,
  transportError,
} from './http-rules.js';
import { createProxies, type Proxies, proxyHeaders } from './proxies.js';

export interface HttpOptions {
  readonly limits: TransportLimits;
  /** Used only to convert the date of a Retry-After to a delay. */
  readonly clock: Clock;
  /** Version of Writ for the User-Agent. */
  readonly version: string;
  /** PEM of the authorities to trust in place of those of the system. */
  readonly ca?: string;
  /** Hosts, such as `cdn.example.net:8443`, to which a redirect over https is allowed; none by default. */
  readonly redirects?: readonly string[];
  /** The proxies of the environment by default. */
  readonly proxies?: Proxies;
}

export interface HttpRequest {
  /** Below the base URL, percent-encoded, without a leading slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly totalTimeoutMs: number;
  readonly signal?: AbortSignal;
}

/** A response with a status that the caller handles. The caller must call `end` exactly once. */
export interface HttpExchange {
  readonly status: 200 | 206 | 304 | 404 | 416;
  /** URL of the response; it differs from the requested one after a redirect. */
  readonly url: string;
  header(name: string): string | undefined;
  /** Time of the server by Date and Age (RFC 9111 section 5.1) in epoch milliseconds. */
  readonly dateMs?: number;
  /** Length of the body in bytes, as the server declares it. */
  readonly contentLength?: number;
  /** The body as it arrives; it may be longer or shorter than declared. */
  body(): AsyncIterable<Buffer>;
  /** Releases the connection and the timers. Discards a short rest of the body, so that the connection can be reused. */
  end(): Promise<void>;
}

export interface HttpClient {
  /**
   * @throws WritError SERVER_UNREACHABLE, SERVER_BUSY (facts.retryAfterMs), SERVER_ERROR (facts.status),
   *   REDIRECT_REFUSED, DOWNLOAD_TIMEOUT, DOWNLOAD_TRUNCATED (while reading), INTERRUPTED
   */
  open(request: HttpRequest): Promise<HttpExchange>;
  /** Loads the modules of the first request, for a caller that measures the latency of a server. */
  load(): Promise<void>;
  close(): Promise<void>;
}

const maxHeaderBytes = 16_384;
const maxDiscardedBytes = 16_384;
/** Limit of 1xx responses. Each restarts the idle timeout of undici, so that they could use up the deadline of an archive. */
const maxInterimAnswers = 16;

/** Creates a client; it connects at the first request. @param baseUrl an http or https URL that ends with a slash */
export function openHttpClient(
  baseUrl: URL,
  { proxies = createProxies(), ...given }: HttpOptions,
): HttpClient {
  const options = { ...given, proxies };
  let agent: Promise<Agent> | undefined;
  const closed = new AbortController();
  const load = (): Promise<Agent> => {
    agent ??= openAgent(options, closed.signal);
    return agent;
  };
  return {
    open: async (request) => exchange(await load(), baseUrl, options, request),
    load: async () => void (await load()),
    close: async () => {
      closed.abort();
      await (await agent)?.destroy();
    },
  };
}

/** Loads undici at the first request, because that takes as long as the rest of a command and many commands use no server. */
async function openAgent({ limits, ca, proxies }: HttpOptions, signal: AbortSignal): Promise<Agent> {
  const { Agent, ...undici } = await import('#undici');
  // undici's parser is WebAssembly. V8 compiles it a second time, optimised, after the first requests; that gains
  // nothing for a few requests a minute and takes 36 MB at its peak, a third of the agent.
  setFlagsFromString('--liftoff-only');
  return new Agent({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: limits.idleTimeoutMs,
    bodyTimeout: limits.idleTimeoutMs,
    connect: createConnector(undici, { timeoutMs: limits.connectTimeoutMs, ca, signal, proxies }),
  });
}

async function exchange(
  agent: Agent,
  baseUrl: URL,
  options: HttpOptions & { readonly proxies: Proxies },
  request: HttpRequest,
): Promise<HttpExchange> {
  const deadline = startDeadline(request.totalTimeoutMs, request.signal);
  let url = `${baseUrl.origin}${baseUrl.pathname}${request.path}`;
  try {
    for (let hops = 0; ; hops += 1) {
      const response = await ask(agent, url, { ...options, ...request }, deadline);
      const next = redirectOf(response, url, { hops, allowed: options.redirects ?? [] });
      if (next === undefined) {
        const refusal = responseError(response, url, options);
        if (refusal === undefined) return asExchange(response, url, deadline, options);
        response.body.destroy();
        throw refusal;
      }
      await release(response, deadline, options.limits);
      url = next;
    }
  } catch (error) {
    deadline.end();
    throw transportError(error, { url, phase: 'head', deadline, proxies: options.proxies });
  }
}

type AskOptions = Pick<HttpOptions, 'version'> & { readonly proxies: Proxies };

async function ask(
  agent: Agent,
  url: string,
  { version, headers, proxies }: Pick<HttpRequest, 'headers'> & AskOptions,
  deadline: Deadline,
): Promise<Dispatcher.ResponseData> {
  const { origin, protocol } = new URL(url);
  const route = protocol === 'http:' ? proxies(new URL(url)) : undefined;
  const asked = agent.request({
    origin,
    // RFC 9112 section 3.2.2: a proxy is sent the whole URL.
    path: route === undefined ? url.slice(origin.length) : url,
    method: 'GET',
    // A compressed body would be unpacked before its signature is verified, so that an attacker without a key could send a
    // decompression bomb.
    headers: {
      ...{ 'user-agent': `writ/${version}`, 'accept-encoding': 'identity' },
      ...(route === undefined ? {} : proxyHeaders(route)),
      ...headers,
    },
    signal: deadline.signal,
    onInfo: countInterim(url),
  });
  const response = await untilDeadline(asked, deadline.signal);
  // An error of a body that is discarded later must not become an unhandled error.
  response.body.on('error', () => undefined);
  if (route === undefined || response.statusCode !== 407) return response;
  response.body.destroy();
  throw refusedByProxy(route, 407, `GET ${url}`, new URL(url).host);
}

/** undici aborts a request only after it has connected. A proxy that does not answer CONNECT would exceed the deadline. */
async function untilDeadline<T>(asked: Promise<T>, signal: AbortSignal): Promise<T> {
  asked.catch(() => undefined);
  const ended = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([asked, ended]);
}

/** @returns a handler of 1xx responses that throws above their limit, which ends the exchange */
function countInterim(url: string): (info: { readonly statusCode: number }) => void {
  let count = 0;
  return ({ statusCode: status }) => {
    count += 1;
    if (count <= maxInterimAnswers) return;
    const facts = { url, status, expected: maxInterimAnswers };
    throw new WritError('SERVER_ERROR', `${url} promises an answer again and again (${status})`, { facts });
  };
}

/** @returns the URL to request next; undefined for a response that is no redirect. @throws WritError REDIRECT_REFUSED */
function redirectOf(
  response: Dispatcher.ResponseData,
  url: string,
  rules: RedirectRules,
): string | undefined {
  const { statusCode: status } = response;
  if (status <= 300 || status >= 400 || status === 304) return undefined;
  const location = headerOf(response, 'location');
  const verdict = judgeRedirect(url, location, rules);
  if (verdict.kind === 'follow') return verdict.url;
  response.body.destroy();
  const { reason } = verdict;
  const facts = { url, status, location: location?.slice(0, 500), reason };
  throw new WritError('REDIRECT_REFUSED', `${url} redirects (${status}) ${reason}`, { facts });
}

const decidable: ReadonlySet<number> = new Set([200, 206, 304, 404, 416]);

/** @returns the error for a response that the caller does not handle; undefined for one that is returned */
function responseError(
  response: Dispatcher.ResponseData,
  url: string,
  { clock, proxies }: Pick<HttpOptions, 'clock'> & { readonly proxies: Proxies },
): WritError | undefined {
  const status = response.statusCode;
  const retryAfterMs = parseRetryAfterMs(headerOf(response, 'retry-after'), clock.nowMs());
  if ((status === 429 || status === 503) && retryAfterMs !== undefined) {
    const facts = { url, status, retryAfterMs };
    return new WritError('SERVER_BUSY', `${url} asks to come back in ${retryAfterMs} ms`, { facts });
  }
  if (!decidable.has(status)) {
    // A proxy itself answers in place of an http server that it does not reach or that its rules forbid.
    const { through, facts, hint: reach } = describeRoute(url, proxies);
    const hint = status >= 500 ? reach : 'Read the logs of the proxy and of the server: either answered.';
    return new WritError('SERVER_ERROR', `${url} answered with status ${status}${through}`, {
      facts: { url, status, ...facts },
      ...(through === '' ? {} : { hint }),
    });
  }
  const encoding = headerOf(response, 'content-encoding');
  if (encoding === undefined || encoding === 'identity') return undefined;
  const facts = { url, status, expected: 'identity', actual: encoding.slice(0, 80) };
  return new WritError('SERVER_ERROR', `${url} has a content encoding that was not requested`, { facts });
}

function asExchange(
  response: Dispatcher.ResponseData,
  url: string,
  deadline: Deadline,
  { limits, proxies }: Pick<HttpOptions, 'limits'> & { readonly proxies: Proxies },
): HttpExchange {
  const declared = headerOf(response, 'content-length');
  const age = headerOf(response, 'age') ?? '';
  const ageMs = /^\d{1,9}$/.test(age) ? Number(age) * 1000 : 0;
  const dateMs = Date.parse(headerOf(response, 'date') ?? '') + ageMs;
  return {
    status: response.statusCode as HttpExchange['status'],
    url,
    header: (name) => headerOf(response, name),
    ...(Number.isNaN(dateMs) ? {} : { dateMs }),
    ...(declared !== undefined && /^\d{1,15}$/.test(declared) ? { contentLength: Number(declared) } : {}),
    body: () => readBody(response, { url, phase: 'body', deadline, proxies }),
    end: async () => {
      await release(response, deadline, limits);
      deadline.end();
    },
  };
}

async function* readBody(
  response: Dispatcher.ResponseData,
  failed: Parameters<typeof transportError>[1],
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response.body) yield chunk as Buffer;
  } catch (error) {
    throw transportError(error, failed);
  }
}

/** Discards the body of a response that is complete without it, and closes the connection of any other unread body. */
async function release(
  response: Dispatcher.ResponseData,
  deadline: Deadline,
  { idleTimeoutMs }: TransportLimits,
): Promise<void> {
  const { body, statusCode } = response;
  if (!body.readableEnded && (statusCode === 404 || Math.trunc(statusCode / 100) === 3)) {
    // Discarding has a short timeout, because a slow body would delay the next request.
    const discarding = startDeadline(idleTimeoutMs, deadline.signal);
    await body.dump({ limit: maxDiscardedBytes, signal: discarding.signal }).catch(() => undefined);
    discarding.end();
  }
  if (!body.readableEnded) body.destroy();
  // undici releases the connection one turn of the event loop later; an earlier request would open another one.
  await setImmediate();
}

function headerOf(response: Dispatcher.ResponseData, name: string): string | undefined {
  const value = response.headers[name];
  return typeof value === 'string' ? value : value?.[0];
}
