// Connects the pages with the authentication of the API: the caller of a request, a session for a token, the end of a session, and the
// public part of an error. Imports no single page.
import type { FastifyInstance } from 'fastify';
import { isWritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { registerPage } from '../page/routes.js';
import type { FleetQueries } from '../queries/fleet-queries.js';
import type { FleetStore } from '../store/open-store.js';
import { errorAnswer } from './answer-error.js';
import { beginSession, cookieText, endSession, findCaller, requireSameOrigin } from './callers.js';
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

/** Adds the pages to the app: they show what the API would answer to the same caller. */
export function addPages(
  app: FastifyInstance,
  { store, clock, log, queries, bound, identity, secure }: PageOptions,
): Promise<void> {
  const { db } = store;
  const parts = () => ({ db, bound, nowMs: clock.nowMs(), secure, ...given({ identity }) });
  return registerPage(app, {
    clock,
    queries,
    authentication: {
      visitorOf: (asking) => findCaller(parts(), asking).catch(ignoreMissingCredential),
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

/** A request without valid credentials has no visitor; a store that does not answer is an error. */
function ignoreMissingCredential(error: unknown): undefined {
  if (isWritError(error) && error.code === 'FLEET_TOKEN_REFUSED') return undefined;
  throw error;
}
