// Types of a route: its URL, the role that it needs, the schemas of a request, and its handler. fastify serves a table of routes, and
// the description of the API is made of the same table. Types and small schemas only.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Role } from '../../core/fleet/answers.js';
import { plainPattern } from '../../core/fleet/report-schema.js';
import { namePattern } from '../../core/names.js';
import { maxReadSerial } from '../../core/release/serial.js';
import type { BodyTerms } from '../bodies/body-gate.js';
import type { Caller } from './callers.js';

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface RouteRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Anonymous where `access` is not a role. */
  readonly caller: Caller;
  /** For a stream: finds the caller of the same credential now. @throws what it would throw before the answer */
  readonly again: () => Promise<Caller>;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** In the form of fastify: `/v1/hosts/:key`. */
  readonly url: string;
  readonly summary: string;
  /** `host`: by the signature of its key. `opa`: by a token of OPAs. */
  readonly access: Role | 'anyone' | 'host' | 'opa';
  readonly querystring?: JsonSchema;
  readonly params?: JsonSchema;
  readonly body?: JsonSchema;
  /** Left out: a few fields, 8 kB. */
  readonly maxBodyBytes?: number;
  /** Verifies the sender by the headers, before the body is read. @throws where the sender may not send a body */
  readonly admit?: (request: FastifyRequest) => Promise<BodyTerms>;
  /** The handler gets the received bytes, for a signature over them. */
  readonly raw?: true;
  /** Member `type` of the answer; left out where the answer is not JSON. */
  readonly type?: string;
  readonly handle: (asked: RouteRequest) => unknown;
}

/** @returns the schema of an object with these properties and no others; none is required by default */
export function object(properties: JsonSchema, required: readonly string[] = []): JsonSchema {
  return { type: 'object', properties, required, additionalProperties: false };
}

export const nameSchema = { type: 'string', pattern: namePattern };
export const serialSchema = { type: 'integer', minimum: 1, maximum: maxReadSerial };
/** Visible characters; without NUL, which PostgreSQL refuses. */
export const textSchema = (maxLength: number): JsonSchema => {
  return { type: 'string', minLength: 1, maxLength, pattern: plainPattern };
};
export const numberSchema = (minimum: number, maximum: number): JsonSchema => {
  return { type: 'integer', minimum, maximum };
};
