// What a route is: a place, who may ask, the schemas of what is asked, and the answer. A table of these is what fastify serves
// and what the description of the API is made of. Types and small schemas only.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Role } from '../../core/fleet/answers.js';
import { plainPattern } from '../../core/fleet/report-schema.js';
import { namePattern } from '../../core/names.js';
import { maxReadSerial } from '../../core/release/serial.js';
import type { BodyTerms } from '../bodies/body-gate.js';
import type { Caller } from './callers.js';

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Asked {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Nobody in particular where `access` is no role. */
  readonly caller: Caller;
  /** For an answer that goes on: who asks by the same credential now. @throws as it did before the answer */
  readonly again: () => Promise<Caller>;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** As fastify has it: `/v1/hosts/:key`. */
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
  /** Bytes as they came, for a signature over them. */
  readonly raw?: true;
  /** Of the answer, as JSON has it in `type`; left out where it is no JSON. */
  readonly type?: string;
  readonly handle: (asked: Asked) => unknown;
}

export function object(properties: JsonSchema, required: readonly string[] = []): JsonSchema {
  return { type: 'object', properties, required, additionalProperties: false };
}

export const nameSchema = { type: 'string', pattern: namePattern };
export const serialSchema = { type: 'integer', minimum: 1, maximum: maxReadSerial };
/** What can be seen, and no NUL, which PostgreSQL does not take. */
export const textSchema = (maxLength: number): JsonSchema => {
  return { type: 'string', minLength: 1, maxLength, pattern: plainPattern };
};
export const numberSchema = (minimum: number, maximum: number): JsonSchema => {
  return { type: 'integer', minimum, maximum };
};
