// Turns an error into an HTTP answer: a status for its code, and the same members as `--json` has. The text of an internal error
// stays in the log.
import type { FastifyError } from 'fastify';
import { type ErrorCode, isWritError, WritError } from '../../core/errors.js';

const statuses: Readonly<Partial<Record<ErrorCode, number>>> = {
  USAGE: 400,
  FLEET_REPORT_INVALID: 400,
  FLEET_TOKEN_REFUSED: 401,
  FLEET_IDENTITY_REFUSED: 401,
  FLEET_KEY_UNKNOWN: 401,
  FLEET_SIGNATURE_REFUSED: 401,
  FLEET_FORBIDDEN: 403,
  FLEET_HOST_NOT_COVERED: 403,
  FLEET_ENROL_FULL: 403,
  FLEET_KEY_WAITING: 403,
  FLEET_KEY_RETIRED: 403,
  FLEET_HOST_UNKNOWN: 404,
  FLEET_TOKEN_UNKNOWN: 404,
  FLEET_REFUSED_OFTEN: 429,
  FLEET_REPORTS_OFTEN: 429,
  FLEET_OVERLOADED: 503,
  FLEET_STORE_BUSY: 503,
  FLEET_STORE_NEWER: 503,
  FLEET_STORE_UNREACHABLE: 503,
  FLEET_STORE_UNWRITABLE: 503,
};

export interface ErrorAnswer {
  readonly status: number;
  readonly body: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly hint: string;
    readonly [member: string]: unknown;
  };
  /** The server caused it, not the caller: it belongs in the log. */
  readonly isOurs: boolean;
}

/**
 * @param error anything that a handler threw; without a code of Writ or of fastify it is answered as 500
 * @returns the status and the body. An internal error and an error of the store get a general text, without their
 * facts.
 */
export function errorAnswer(error: unknown): ErrorAnswer {
  const known: Known = isWritError(error) ? { error } : requestError(error as Partial<FastifyError>);
  const status = known.status ?? statuses[known.error.code] ?? 500;
  const { code, message, hint, facts } = known.error;
  // A message of the database or of a bug may quote a row, or contain the address of the database.
  const isOurs = status === 500 || code.startsWith('FLEET_STORE_');
  const text = isOurs ? 'the server could not answer; its log has the reason' : message;
  const { expected, actual } = isOurs ? {} : facts;
  return { status, body: { schema: 1, type: 'error', code, message: text, hint, expected, actual }, isOurs };
}

interface Known {
  readonly error: WritError;
  readonly status?: number;
}

const hint = 'GET /v1/openapi.json describes the requests.';

/** For what fastify refuses before a handler runs. */
function requestError({ statusCode, validation, message = '' }: Partial<FastifyError>): Known {
  if (validation !== undefined)
    return { error: new WritError('USAGE', message.slice(0, 300), { hint }), status: 400 };
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return { error: new WritError('USAGE', message.slice(0, 300), { hint }), status: statusCode };
  return { error: new WritError('INTERNAL', message) };
}
