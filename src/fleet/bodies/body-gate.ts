// Reserves memory for each body before it is read, and bounds its size and time by what the headers proved about the sender. Without
// its own account, a request counts for its address, with a small bound. Verifies no credential.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { WritError } from '../../core/errors.js';
import { clientOf } from '../../platform/serve/admission.js';
import type { Clock } from '../../platform/time/clock.js';
import type { BodyAccount, BodyBudget, BodyReservation } from './body-budget.js';

/** The bounds of a body, which a route derives from the headers. */
export interface BodyTerms {
  readonly account: BodyAccount;
  readonly maxBytes: number;
  /** Undefined: bounded only by the timeout of a request. */
  readonly timeoutMs?: number | undefined;
}

/** Bounds of a body from an unauthenticated sender. */
export const unprovenBody = { maxBytes: 16_384, timeoutMs: 10_000 } as const;

interface GateParts {
  readonly budget: BodyBudget;
  readonly clock: Pick<Clock, 'sleep'>;
}

interface Held {
  readonly reservation: BodyReservation;
  isHandling: boolean;
  isClosed: boolean;
}

export class BodyGate {
  readonly #parts: GateParts;
  readonly #terms = new WeakMap<FastifyRequest, BodyTerms>();
  readonly #held = new WeakMap<FastifyRequest, Held>();

  constructor(parts: GateParts) {
    this.#parts = parts;
  }

  /** Adds the reservation to each request with a body, also to requests without a route. */
  addTo(app: FastifyInstance): void {
    app.addHook('preParsing', async (request, reply, payload) => {
      this.#open(request, reply);
      return payload;
    });
  }

  /** Sets the bounds of a request. Must be called in `onRequest`. */
  setTerms(request: FastifyRequest, terms: BodyTerms): void {
    this.#terms.set(request, terms);
  }

  /**
   * Keeps the reservation while the handler runs, because the bytes stay in memory even after the client disconnects.
   *
   * @returns the result of the handler
   */
  async keepDuring<T>(request: FastifyRequest, handle: () => Promise<T>): Promise<T> {
    const held = this.#held.get(request);
    if (held === undefined) return handle();
    held.isHandling = true;
    try {
      return await handle();
    } finally {
      held.isHandling = false;
      if (held.isClosed) held.reservation.release();
    }
  }

  /** @throws an error with status 413 for a too large body; FLEET_OVERLOADED if its account has no memory left */
  #open(request: FastifyRequest, reply: FastifyReply): void {
    const announced = announcedBytes(request);
    if (announced === 0) return;
    const terms = this.#terms.get(request) ?? termsOfAddress(request.ip);
    if (announced > terms.maxBytes) throw bodyTooLarge(terms.maxBytes);
    const reservation = this.#parts.budget.reserve(terms.account, announced);
    if (reservation === undefined)
      throw new WritError('FLEET_OVERLOADED', 'the server has no memory left for bodies of this sender');
    const held: Held = { reservation, isHandling: false, isClosed: false };
    this.#held.set(request, held);
    reply.raw.once('close', () => {
      held.isClosed = true;
      if (!held.isHandling) reservation.release();
    });
    if (terms.timeoutMs !== undefined) void this.#endLate(request, reply, terms.timeoutMs);
  }

  async #endLate({ raw }: FastifyRequest, reply: FastifyReply, timeoutMs: number): Promise<void> {
    const done = new AbortController();
    raw.once('end', () => done.abort());
    reply.raw.once('close', () => done.abort());
    await this.#parts.clock.sleep(timeoutMs, done.signal);
    if (!done.signal.aborted) raw.destroy();
  }
}

/**
 * @returns the bounds of a body from an unauthenticated sender (`unprovenBody`); it counts for the client of the
 * address
 * @param maxBodies how many bodies this client may send at the same time; undefined: the default of the body budget
 */
export function termsOfAddress(address: string, maxBodies?: number): BodyTerms {
  return { account: { kind: 'address', client: clientOf(address), maxBodies }, ...unprovenBody };
}

/** @returns the size in Content-Length; without this header, the limit of the route */
function announcedBytes({ headers, routeOptions }: FastifyRequest): number {
  if (headers['transfer-encoding'] !== undefined) return routeOptions.bodyLimit;
  return Number(headers['content-length'] ?? 0);
}

/** @returns an error like that of fastify for a body above the limit of its route */
function bodyTooLarge(maxBytes: number): Error {
  const text = `this sender may send a body of ${maxBytes} bytes, with a Content-Length`;
  return Object.assign(new Error(text), { statusCode: 413 });
}
