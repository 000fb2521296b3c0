// Validates the responses of a fleet server: returns checked values or throws a coded error. Pure functions. A hostile server,
// or one that is no fleet server, can change only the time of the next report.

import { type ErrorCode, WritError } from '../../core/errors.js';
import {
  type CounterChallenge,
  type EnrolAnswer,
  longestGrantMs,
  type ReportAnswer,
} from '../../core/fleet/report.js';
import { maxCounter } from '../../core/fleet/signed-request.js';
import { given } from '../../core/given.js';
import { maxRetryAfterMs } from '../../core/limits.js';
import { certificateTimeHint, isCertificateErrno } from '../../platform/net/connect-failure.js';
import type { HttpReply } from '../../platform/net/http-request.js';
import { givenName } from './fleet-files.js';

type Answered = Extract<HttpReply, { readonly kind: 'answered' }>;

/** The kind of a request, on which the meaning of an HTTP status depends. */
export type FleetRequestKind = 'enrol' | 'report';

export const maxAnswerBytes = 16_384;

/** @returns a successful response, or a challenge (409) to a report. @throws WritError FLEET_* for every other one */
export function judgeReply(reply: HttpReply, url: URL, kind: FleetRequestKind): Answered {
  if (reply.kind === 'failed') throw failed(reply, url);
  const { status, retryAfterMs } = reply;
  if ((status >= 200 && status < 300) || (status === 409 && kind === 'report')) return reply;
  const facts = { url: url.href, status };
  if (status === 429 || status === 503) {
    const laterMs = retryAfterMs === undefined ? undefined : Math.min(retryAfterMs, maxRetryAfterMs);
    throw new WritError('FLEET_BUSY', `${url.href} asks to retry later`, {
      facts: laterMs === undefined ? facts : { ...facts, retryAfterMs: laterMs },
    });
  }
  throw new WritError(codeOf(reply, kind), `${url.href} answered with status ${status}`, { facts });
}

function failed({ reason, hint }: Extract<HttpReply, { readonly kind: 'failed' }>, url: URL): WritError {
  const isAnswer = reason === 'it does not speak HTTP' || reason.startsWith('its answer is longer');
  const code = isCertificateErrno(reason)
    ? 'FLEET_CERTIFICATE'
    : isAnswer
      ? 'FLEET_ANSWER'
      : 'FLEET_UNREACHABLE';
  const facts = { url: url.href };
  return new WritError(code, `${url.href}: ${reason.slice(0, 200)}`, {
    facts,
    ...given({ hint: hint ?? certificateTimeHint(reason) }),
  });
}

/** The error codes that a server may send. */
const serverCodes: readonly ErrorCode[] = [
  ...(['FLEET_TOKEN_REFUSED', 'FLEET_HOST_NOT_COVERED', 'FLEET_ENROL_FULL', 'FLEET_KEY_WAITING'] as const),
  ...(['FLEET_KEY_RETIRED', 'FLEET_KEY_UNKNOWN', 'FLEET_SIGNATURE_REFUSED', 'FLEET_REPORT_INVALID'] as const),
];

function codeOf({ status, body }: Answered, kind: FleetRequestKind): ErrorCode {
  const own = serverCodes.find((one) => one === objectIn(body)?.['code']);
  if (own !== undefined && status >= 400 && status < 500) return own;
  if (status === 401) return kind === 'enrol' ? 'FLEET_TOKEN_REFUSED' : 'FLEET_KEY_UNKNOWN';
  if (status === 403) return kind === 'enrol' ? 'FLEET_TOKEN_REFUSED' : 'FLEET_KEY_RETIRED';
  if ([400, 409, 413, 422].includes(status)) return 'FLEET_REPORT_INVALID';
  return status >= 500 ? 'FLEET_UNREACHABLE' : 'FLEET_ANSWER';
}

/** Parses the response to an enrolment. @throws WritError FLEET_ANSWER */
export function readEnrolAnswer({ body }: Answered, url: URL): EnrolAnswer {
  const { fleet, keyId, state } = memberOf(body, url);
  const name = new RegExp(givenName);
  if (!isText(fleet) || !name.test(fleet) || !isText(keyId) || !name.test(keyId)) throw malformedAnswer(url);
  if (state !== 'accepted' && state !== 'waiting') throw malformedAnswer(url);
  return { fleet, keyId, state };
}

/** Parses the response to a report. @throws WritError FLEET_ANSWER */
export function readReportAnswer({ body }: Answered, url: URL): ReportAnswer {
  const { everyMs, outcomes } = memberOf(body, url);
  if (!isCount(everyMs) || !isCount(outcomes)) throw malformedAnswer(url);
  return { everyMs, outcomes };
}

/**
 * Parses a challenge.
 * @returns counter, and nonce: 1 to 200 printable ASCII characters without a space
 * @throws WritError FLEET_ANSWER, also for a nonce that would inject another header
 */
export function readChallenge({ body }: Answered, url: URL): CounterChallenge {
  const { counter, nonce } = memberOf(body, url);
  if (!isCount(counter) || !isText(nonce) || !/^[\x21-\x7e]{1,200}$/.test(nonce)) throw malformedAnswer(url);
  return { counter, nonce };
}

/**
 * Limits the report interval of a server. It may only be longer than the configured one, up to a limit.
 * @returns milliseconds
 */
export function clampIntervalMs(askedMs: number, answerMs: number): number {
  return Math.min(Math.max(askedMs, answerMs), longestGrantMs(askedMs));
}

function memberOf(body: string, url: URL): Readonly<Record<string, unknown>> {
  const value = objectIn(body);
  if (value === undefined) throw malformedAnswer(url);
  return value;
}

function objectIn(body: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < maxCounter;
}

function malformedAnswer(url: URL): WritError {
  return new WritError('FLEET_ANSWER', `${url.href} did not answer like a fleet server`, {
    facts: { url: url.href },
  });
}
