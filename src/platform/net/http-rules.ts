// Rules for HTTP responses: the delay of a Retry-After, allowed redirects, and the error codes of failures. Only this file maps
// error names of undici and the kernel. Pure functions.
import { type ErrorCode, isSystemError, isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { maxRedirects, maxRetryAfterMs } from '../../core/limits.js';
import type { Deadline } from '../time/deadline.js';
import { ConnectError, connectFailure, ProxyError } from './connect-failure.js';
import type { Proxies } from './proxies.js';

/**
 * @param value of Retry-After: seconds, or an HTTP date (RFC 9110 section 10.2.3)
 * @returns the delay in milliseconds, at most maxRetryAfterMs; undefined if none
 */
export function parseRetryAfterMs(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  const delayMs = /^\d{1,12}$/.test(value) ? Number(value) * 1000 : parseHttpDate(value) - nowMs;
  return Number.isFinite(delayMs) ? Math.min(Math.max(delayMs, 0), maxRetryAfterMs) : undefined;
}

/** Date.parse alone accepts almost any text as a date: `-5` is in May 2001. */
function parseHttpDate(value: string): number {
  return /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value) ? Date.parse(value) : Number.NaN;
}

interface FailedExchange {
  readonly url: string;
  /** `head`: before the response; `body`: after its head. */
  readonly phase: 'head' | 'body';
  readonly deadline: Deadline;
  readonly proxies?: Proxies;
}

/** @returns the coded error for an error of an exchange; a WritError is returned unchanged */
export function transportError(
  error: unknown,
  { url, phase, deadline, proxies = () => undefined }: FailedExchange,
): WritError {
  const { signal } = deadline;
  const cause = !isWritError(error) && signal.aborted && isWritError(signal.reason) ? signal.reason : error;
  if (isWritError(cause)) return cause === signal.reason ? atUrl(cause, url, proxies) : cause;
  if (error instanceof ProxyError) return errorOfProxy(error, url);
  const errno = isSystemError(error) ? (error.code ?? error.name) : 'unknown';
  const reason = error instanceof Error ? error.message : String(error);
  const attempts = error instanceof ConnectError ? error.message : undefined;
  const code = codeOf(errno, phase);
  const hasKnownText = code === 'SERVER_UNREACHABLE' || code === 'DOWNLOAD_TIMEOUT';
  const { text, hint } = hasKnownText ? connectFailure(errno, reason, attempts) : { text: reason };
  const { through, facts, hint: ofProxy } = describeRoute(url, proxies);
  return new WritError(code, `${url}: ${text}${through}`, {
    facts: { url, errno, ...facts },
    cause: error,
    ...given({ hint: ofProxy ?? hint }),
  });
}

/** Adds the URL to a timeout, because the deadline does not know it. Other errors are returned unchanged. */
function atUrl(cause: WritError, url: string, proxies: Proxies): WritError {
  if (cause.code !== 'DOWNLOAD_TIMEOUT') return cause;
  const { through, facts, hint } = describeRoute(url, proxies);
  const text = `${url}: ${cause.message}${through}`;
  return new WritError(cause.code, text, {
    facts: { ...cause.facts, url, ...facts },
    cause,
    ...given({ hint }),
  });
}

interface RouteText {
  /** Empty without a proxy, and for an https server: its tunnel has its own errors. */
  readonly through: string;
  readonly facts: { readonly proxy?: string };
  readonly hint?: string;
}

/** @returns the proxy of an http server for an error text, because the proxy may be the cause */
export function describeRoute(url: string, proxies: Proxies): RouteText {
  const proxy = url.startsWith('http:') ? proxies(new URL(url))?.url.origin : undefined;
  if (proxy === undefined) return { through: '', facts: {} };
  return { through: ` through the proxy ${proxy}`, facts: { proxy }, hint: reachHint(new URL(url).host) };
}

/** @returns a hint to check the server from the proxy, which resolves the name and connects. @param server host and port */
export function reachHint(server: string): string {
  return `Check on the machine of the proxy that ${server} has an address and answers.`;
}

/** A response of the proxy is its refusal; without a response the server counts as unreachable. */
function errorOfProxy(error: ProxyError, url: string): WritError {
  const { message, proxy, status, errno, hint } = error;
  const code = status === undefined ? 'SERVER_UNREACHABLE' : 'PROXY_REFUSED';
  const facts = { url, proxy, ...given({ status, errno }) };
  return new WritError(code, `${url}: ${message}`, { facts, cause: error, hint });
}

/** Errors of the HTTP parser: no HTTP, too long headers, or two lengths of one body. */
const notHttp: ReadonlySet<string> = new Set([
  'HTTPParserError',
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
]);

function codeOf(errno: string, phase: FailedExchange['phase']): ErrorCode {
  if (errno === 'UND_ERR_HEADERS_TIMEOUT' || errno === 'UND_ERR_BODY_TIMEOUT') return 'DOWNLOAD_TIMEOUT';
  if (notHttp.has(errno) || errno.startsWith('HPE_')) return 'SERVER_ERROR';
  return phase === 'body' ? 'DOWNLOAD_TRUNCATED' : 'SERVER_UNREACHABLE';
}

export interface RedirectRules {
  /** Redirects followed so far for this request. */
  readonly hops: number;
  /** Hosts, with a port unless it is 443. */
  readonly allowed: readonly string[];
}

export type RedirectVerdict =
  | { readonly kind: 'follow'; readonly url: string }
  | { readonly kind: 'refuse'; readonly reason: string };

const maxUrlCharacters = 4000;

/**
 * Decides on a redirect. Any path on the same host and scheme is allowed. Otherwise only a configured host over https is
 * allowed, because an attacker could redirect this host into its own private network.
 * @param from absolute URL of the redirect response
 * @param location its Location header, unchanged
 */
export function judgeRedirect(
  from: string,
  location: string | undefined,
  { hops, allowed }: RedirectRules,
): RedirectVerdict {
  if (hops >= maxRedirects) return refuse(`more than ${maxRedirects} times`);
  if (location === undefined || location.length > maxUrlCharacters || !URL.canParse(location, from))
    return refuse('to no place');
  const here = new URL(from);
  const there = new URL(location, from);
  if (there.username !== '' || there.password !== '') return refuse('to a place with a name or password');
  const follow: RedirectVerdict = { kind: 'follow', url: `${there.origin}${there.pathname}${there.search}` };
  if (there.origin === here.origin) return follow;
  // Never to plain http, even if configured: an attacker on that path could read and replace the downloads of a host.
  if (there.protocol !== 'https:') return refuse('to another scheme or host');
  const isAllowed = allowed.some((host) => new URL(`https://${host}`).host === there.host);
  return isAllowed ? follow : refuse('to a host that is not in `redirects`');
}

function refuse(reason: string): RedirectVerdict {
  return { kind: 'refuse', reason };
}
