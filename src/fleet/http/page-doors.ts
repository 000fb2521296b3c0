// What the pages ask of the API's own doors: who visits, a person's token for a cookie, the end of that session, and what may be
// said of an error. Knows no page.
import type { FastifyInstance } from 'fastify';
import { isWritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { registerPage } from '../page/routes.js';
import type { FleetQueries } from '../queries/fleet-queries.js';
import type { FleetStore } from '../store/open-store.js';
import { errorAnswer } from './answer-error.js';
import { beginSession, callerOf, cookieText, endSession, requireSameOrigin } from './callers.js';
import type { IdentityRule } from './identity-rules.js';
import type { RefusalBound } from './refusal-bound.js';

export interface PageOptions {
  readonly store: Pick<FleetStore, 'db'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly queries: FleetQueries;
  readonly bound: RefusalBound;
  readonly identity?: IdentityRule | undefined;
  /** Cookies over TLS alone. */
  readonly secure: boolean;
}

/** Adds the pages to the app: they see what the API would answer the same caller. */
export function addPages(
  app: FastifyInstance,
  { store, clock, log, queries, bound, identity, secure }: PageOptions,
): Promise<void> {
  const { db } = store;
  const parts = () => ({ db, bound, nowMs: clock.nowMs(), secure, ...given({ identity }) });
  return registerPage(app, {
    clock,
    queries,
    doors: {
      visitorOf: (asking) => callerOf(parts(), asking).catch(nobodyOf),
      signIn: async (token, asking) => {
        requireSameOrigin(asking.headers);
        return cookieText(await beginSession(parts(), token, asking), secure);
      },
      signOut: async (headers) => {
        requireSameOrigin(headers);
        await endSession({ db, secure }, headers);
        return cookieText('', secure);
      },
    },
    faultOf: (error) => {
      const { status, body, isOurs } = errorAnswer(error);
      if (isOurs) log.error({ err: error }, 'a page was not made');
      return { status, ...body };
    },
  });
}

/** Without credentials that are good now there is nobody; a store that does not answer is another matter. */
function nobodyOf(error: unknown): undefined {
  if (isWritError(error) && error.code === 'FLEET_TOKEN_REFUSED') return undefined;
  throw error;
}
