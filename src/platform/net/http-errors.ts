// What can go wrong on the network, as error codes: one place that knows the names undici and the kernel use.
import { type ErrorCode, isSystemError, isWritError, WritError } from '../../core/errors.js';
import { maxRetryAfterMs } from '../../core/limits.js';
import type { Deadline } from '../time/deadline.js';

/**
 * @param value of Retry-After: seconds, or an HTTP date (RFC 9110 section 10.2.3)
 * @returns the delay in milliseconds, at most maxRetryAfterMs; undefined if none
 */
export function parseRetryAfterMs(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  const delayMs = /^\d{1,12}$/.test(value) ? Number(value) * 1000 : parseHttpDate(value) - nowMs;
  return Number.isFinite(delayMs) ? Math.min(Math.max(delayMs, 0), maxRetryAfterMs) : undefined;
}

/** Date.parse alone takes almost any text for some date: `-5` is in May 2001. */
function parseHttpDate(value: string): number {
  return /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value) ? Date.parse(value) : Number.NaN;
}

export interface FailedExchange {
  readonly url: string;
  /** `head`: no response yet; `body`: it had begun. */
  readonly phase: 'head' | 'body';
  readonly deadline: Deadline;
}

/** @returns the coded error for what an exchange threw; a WritError comes back as it is. */
export function transportError(error: unknown, exchange: FailedExchange): WritError {
  const { url, phase, deadline } = exchange;
  if (isWritError(error)) return error;
  if (deadline.signal.aborted && isWritError(deadline.signal.reason)) return deadline.signal.reason;
  const errno = isSystemError(error) ? (error.code ?? error.name) : 'unknown';
  const reason = error instanceof Error ? error.message : String(error);
  return new WritError(codeOf(errno, phase), `${url}: ${reason}`, {
    facts: { url, errno },
    cause: error,
  });
}

/** The parser of HTTP met something that is none, headers without end, or two lengths of one body. */
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
