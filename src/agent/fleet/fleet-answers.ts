// What a fleet server answered, in our words: a value that is checked, or a coded error. Pure. Nothing of an answer goes on
// unread: a server that is hostile, or is none, changes when this host reports and no more.

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
import type { HttpReply } from '../../platform/net/http-ask.js';
import { givenName } from './fleet-files.js';

type Answered = Extract<HttpReply, { readonly kind: 'answered' }>;

/** What was asked: the same status means another thing to each. */
export type Asked = 'enrol' | 'report';

export const maxAnswerBytes = 16_384;

/** @returns an answer that says yes, or challenges. @throws WritError FLEET_* */
export function judgeReply(reply: HttpReply, url: URL, asked: Asked): Answered {
  if (reply.kind === 'failed') throw failed(reply, url);
  const { status, retryAfterMs } = reply;
  if ((status >= 200 && status < 300) || (status === 409 && asked === 'report')) return reply;
  const facts = { url: url.href, status };
  if (status === 429 || status === 503) {
    const laterMs = retryAfterMs === undefined ? undefined : Math.min(retryAfterMs, maxRetryAfterMs);
    throw new WritError('FLEET_BUSY', `${url.href} asks to retry later`, {
      facts: laterMs === undefined ? facts : { ...facts, retryAfterMs: laterMs },
    });
  }
  throw new WritError(codeOf(reply, asked), `${url.href} answered with status ${status}`, { facts });
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

/** What a server may say of a host by its code. */
const said: readonly ErrorCode[] = [
  ...(['FLEET_TOKEN_REFUSED', 'FLEET_HOST_NOT_COVERED', 'FLEET_ENROL_FULL', 'FLEET_KEY_WAITING'] as const),
  ...(['FLEET_KEY_RETIRED', 'FLEET_KEY_UNKNOWN', 'FLEET_SIGNATURE_REFUSED', 'FLEET_REPORT_INVALID'] as const),
];

function codeOf({ status, body }: Answered, asked: Asked): ErrorCode {
  const own = said.find((one) => one === objectIn(body)?.['code']);
  if (own !== undefined && status >= 400 && status < 500) return own;
  if (status === 401) return asked === 'enrol' ? 'FLEET_TOKEN_REFUSED' : 'FLEET_KEY_UNKNOWN';
  if (status === 403) return asked === 'enrol' ? 'FLEET_TOKEN_REFUSED' : 'FLEET_KEY_RETIRED';
  if ([400, 409, 413, 422].includes(status)) return 'FLEET_REPORT_INVALID';
  return status >= 500 ? 'FLEET_UNREACHABLE' : 'FLEET_ANSWER';
}

/** @throws WritError FLEET_ANSWER */
export function readEnrolAnswer({ body }: Answered, url: URL): EnrolAnswer {
  const { fleet, keyId, state } = memberOf(body, url);
  const name = new RegExp(givenName);
  if (!isText(fleet) || !name.test(fleet) || !isText(keyId) || !name.test(keyId)) throw strange(url);
  if (state !== 'accepted' && state !== 'waiting') throw strange(url);
  return { fleet, keyId, state };
}

/** @throws WritError FLEET_ANSWER */
export function readReportAnswer({ body }: Answered, url: URL): ReportAnswer {
  const { everyMs, outcomes } = memberOf(body, url);
  if (!isCount(everyMs) || !isCount(outcomes)) throw strange(url);
  return { everyMs, outcomes };
}

/** @throws WritError FLEET_ANSWER: also for a nonce that would be another header */
export function readChallenge({ body }: Answered, url: URL): CounterChallenge {
  const { counter, nonce } = memberOf(body, url);
  if (!isCount(counter) || !isText(nonce) || !/^[\x21-\x7e]{1,200}$/.test(nonce)) throw strange(url);
  return { counter, nonce };
}

/** A server may make the interval longer, within a bound; one that asks for more is only greedy. */
export function grantedMs(askedMs: number, answerMs: number): number {
  return Math.min(Math.max(askedMs, answerMs), longestGrantMs(askedMs));
}

function memberOf(body: string, url: URL): Readonly<Record<string, unknown>> {
  const value = objectIn(body);
  if (value === undefined) throw strange(url);
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

function strange(url: URL): WritError {
  return new WritError('FLEET_ANSWER', `${url.href} did not answer like a fleet server`, {
    facts: { url: url.href },
  });
}
