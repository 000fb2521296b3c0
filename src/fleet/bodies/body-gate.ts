// Reserves memory for each body before it is read, and bounds its size and its time by what the headers proved of its sender.
// Without an account of its own a request counts for its address, and only as a small one. Judges no credential.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { WritError } from '../../core/errors.js';
import { clientOf } from '../../platform/serve/admission.js';
import type { Clock } from '../../platform/time/clock.js';
import type { BodyAccount, BodyBudget, BodyReservation } from './body-budget.js';

/** What a route learned from the headers, before the body. */
export interface BodyTerms {
  readonly account: BodyAccount;
  readonly maxBytes: number;
  /** Undefined: the time of a request is the only bound. */
  readonly timeoutMs?: number | undefined;
}

/** Of a body whose sender proved nothing. */
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

  /** Adds the reservation to each request of this app that has a body, also where no route answers it. */
  addTo(app: FastifyInstance): void {
    app.addHook('preParsing', async (request, reply, payload) => {
      this.#open(request, reply);
      return payload;
    });
  }

  /** For a request in `onRequest`. */
  setTerms(request: FastifyRequest, terms: BodyTerms): void {
    this.#terms.set(request, terms);
  }

  /**
   * Keeps the reservation while the handler works, because the bytes stay in memory when the client has gone.
   *
   * @returns what the handler returns
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

  /** @throws an error with status 413 for a body that is too large; FLEET_OVERLOADED where no memory is left for its account */
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

export function termsOfAddress(address: string, maxBodies?: number): BodyTerms {
  return { account: { kind: 'address', client: clientOf(address), maxBodies }, ...unprovenBody };
}

/** @returns the size in Content-Length; without one the most that the route reads */
function announcedBytes({ headers, routeOptions }: FastifyRequest): number {
  if (headers['transfer-encoding'] !== undefined) return routeOptions.bodyLimit;
  return Number(headers['content-length'] ?? 0);
}

/** As fastify has its own refusal of a body above the limit of its route. */
function bodyTooLarge(maxBytes: number): Error {
  const text = `this sender may send a body of ${maxBytes} bytes, with a Content-Length`;
  return Object.assign(new Error(text), { statusCode: 413 });
}
