// The routes with which a fleet server reports its own state, with the store of a bench and without a listener.
import { createFleetMetrics } from '../../../src/fleet/http/fleet-metrics.js';
import { ownRoutes } from '../../../src/fleet/http/own-routes.js';
import { createRefusalBound } from '../../../src/fleet/http/refusal-bound.js';
import type { RouteRequest } from '../../../src/fleet/http/routes.js';
import { createFleetQueries } from '../../../src/fleet/queries/fleet-queries.js';
import type { FleetBench } from './fleet-bench.js';

type AskRoute = (url: string, headers?: Record<string, string>) => Promise<unknown>;

/** @returns a function that requests a route; its result is undefined for an unknown path */
export async function ownRoutesOf({ store, clock }: Pick<FleetBench, 'store' | 'clock'>): Promise<AskRoute> {
  const metrics = await createFleetMetrics({ process: 'omit' });
  const queries = createFleetQueries(store.db, store.fleetId, clock);
  const bound = createRefusalBound(clock);
  const routes = ownRoutes({ store, queries, metrics, bound, clock, secure: false });
  return async (url, headers = {}) => {
    const reply = { type: () => ({ send: (text: string) => text }) };
    const asked = { request: { headers, ip: '192.0.2.1' }, reply } as unknown as RouteRequest;
    return routes.find((one) => one.url === url)?.handle(asked);
  };
}
