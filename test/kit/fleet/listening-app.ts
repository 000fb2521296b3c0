// The routes of a fleet server with the store of a bench, listening on loopback, for tests that damage the store under a server.
import { createServer, type RequestListener } from 'node:http';
import type { BlockList } from 'node:net';
import { createIngest } from '../../../src/fleet/hosts/ingest.js';
import { changeRoutes } from '../../../src/fleet/http/change-routes.js';
import { createApp } from '../../../src/fleet/http/fleet-app.js';
import { createFleetMetrics } from '../../../src/fleet/http/fleet-metrics.js';
import { hostRoutes } from '../../../src/fleet/http/host-routes.js';
import { opaRoutes } from '../../../src/fleet/http/opa-routes.js';
import { addPages } from '../../../src/fleet/http/page-authentication.js';
import { createRefusalBound } from '../../../src/fleet/http/refusal-bound.js';
import { createFleetQueries } from '../../../src/fleet/queries/fleet-queries.js';
import type { FleetStore } from '../../../src/fleet/store/open-store.js';
import { uncountedAddresses } from '../../../src/platform/serve/admission.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { type Clock, systemClock } from '../../../src/platform/time/clock.js';

export interface ListeningApp extends AsyncDisposable {
  readonly url: string;
}

export interface AppMore {
  readonly clock?: Clock;
  /** Addresses that many hosts share; loopback by default. */
  readonly shared?: BlockList;
}

/** @returns the address of the listening routes. Disposal closes them and leaves the store open. */
export async function listeningApp(
  store: FleetStore,
  { clock = systemClock, shared = uncountedAddresses([]) }: AppMore = {},
): Promise<ListeningApp> {
  const log = silentLog();
  const metrics = await createFleetMetrics({ process: 'omit' });
  const bound = createRefusalBound(clock);
  const ingest = createIngest(store, { clock, log });
  const queries = createFleetQueries(store.db, store.fleetId, clock);
  const nowMs = (): number => clock.nowMs();
  const app = await createApp({
    ...{ store, clock, log, metrics, bound, secure: false, isEnding: () => false },
    routes: [
      ...hostRoutes({ store, ingest, bound, clock, metrics, shared }),
      ...opaRoutes(store.db, bound, nowMs),
      ...changeRoutes(store.db, nowMs),
    ],
    addPages: (to) => addPages(to, { store, clock, log, queries, bound, secure: false }),
    createServer: (handler: RequestListener) => createServer(handler),
  });
  return {
    url: await app.listen({ host: '127.0.0.1', port: 0 }),
    [Symbol.asyncDispose]: async () => {
      app.server.closeAllConnections();
      await app.close();
      await ingest.close();
    },
  };
}
