// Routes about the server itself: whether its store answers, and its metrics. Both are open to each client, so neither queries the
// store for each request: a flood of requests costs one query in a few seconds. Names of bundles need a token.
import { given } from '../../core/given.js';
import { writVersion } from '../../core/version.js';
import type { Clock } from '../../platform/time/clock.js';
import type { FleetQueries } from '../queries/fleet-queries.js';
import { openRepositoryViews } from '../repositories/repository-views.js';
import type { FleetStore } from '../store/open-store.js';
import { requireVersion } from '../store/schema-version.js';
import { cacheAnswer } from './cached-answer.js';
import { findCaller } from './callers.js';
import type { FleetMetrics, StoreNumbers } from './fleet-metrics.js';
import type { IdentityRule } from './identity-rules.js';
import type { RefusalBound } from './refusal-bound.js';
import type { Route, RouteRequest } from './routes.js';

export interface OwnRoutesOptions {
  readonly store: Pick<FleetStore, 'db'>;
  readonly queries: Pick<FleetQueries, 'summary'>;
  readonly metrics: FleetMetrics;
  readonly bound: RefusalBound;
  readonly identity?: IdentityRule | undefined;
  /** Sessions over TLS alone. */
  readonly secure: boolean;
  readonly clock: Clock;
}

const health = { forMs: 1000, waitMs: 3000 };
const numbers = { forMs: 3000, waitMs: 4000 };
const texts = { forMs: 1000, waitMs: 6000 };

/**
 * @returns the routes `/healthz` and the metrics. Both answers are cached for a few seconds and shared by all clients.
 */
export function ownRoutes(options: OwnRoutesOptions): Route[] {
  const { store, queries, metrics, bound, clock, identity, secure } = options;
  const { db } = store;
  const views = openRepositoryViews(db);
  const readHealth = cacheAnswer(clock, health, async () => {
    await requireVersion(db);
    return views.read(clock.nowMs());
  });
  const count = cacheAnswer(clock, numbers, async () => {
    const { sessions } = await db
      .selectFrom('sessions')
      .select((of) => of.fn.countAll<number>().as('sessions'))
      .executeTakeFirstOrThrow();
    return { summary: await queries.summary('view'), sessions: Number(sessions) };
  });
  // The server's own counters are shown also while its store does not answer, because they are needed most then.
  const facts = (): Promise<StoreNumbers> => count().catch(() => undefined);
  const textOf = {
    hidden: cacheAnswer(clock, texts, async () => metrics.text(await facts(), 'hidden')),
    shown: cacheAnswer(clock, texts, async () => metrics.text(await facts(), 'shown')),
  };
  return [
    {
      method: 'GET',
      url: '/healthz',
      summary:
        '200 while the store answers and no newer version has it; `unread` has a code for each repository that could not be read the last time',
      access: 'anyone',
      handle: async () => {
        const read = await readHealth();
        // Without names, because each client that reaches the server may read it.
        const unread = read.flatMap(({ failing }) => (failing === undefined ? [] : [failing.code]));
        const repositories = read.length === 0 ? {} : { repositories: read.length, unread };
        return { status: 'ok', version: writVersion, ...repositories };
      },
    },
    {
      method: 'GET',
      url: '/metrics',
      summary: 'Numbers for Prometheus, without any name; with a token for people also by bundle and channel',
      access: 'anyone',
      handle: async ({ request, reply }: RouteRequest) => {
        const isNamed = request.headers.authorization !== undefined;
        // A token that is not valid is an error: otherwise a dashboard would lose half of its numbers without a reason.
        if (isNamed)
          await findCaller({ db, bound, nowMs: clock.nowMs(), secure, ...given({ identity }) }, request);
        return reply.type(metrics.contentType).send(await textOf[isNamed ? 'shown' : 'hidden']());
      },
    },
  ];
}
